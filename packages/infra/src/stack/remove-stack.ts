import { DeleteStackCommand } from "@aws-sdk/client-cloudformation";
import { randomUUID } from "node:crypto";
import { StackOperationError } from "zae-limiter";
import { getErrorMessage, getErrorName } from "../aws/aws-errors.ts";
import type { AwsClients } from "../aws/clients.ts";
import { EventFeed } from "./events.ts";
import { operationError, untilFinished, type Listeners } from "./follow.ts";
import { readStack } from "./stack-state.ts";

/** Deletes a stack, and waits until it is gone, unless `wait` is false. */
export async function removeStack(
  clients: AwsClients,
  { onEvent, wait = true }: Listeners & { readonly wait?: boolean | undefined },
): Promise<void> {
  const stack = await readStack(clients);
  if (stack === undefined) return;
  const feed = new EventFeed(clients, stack.id);
  await feed.skip();
  const command = new DeleteStackCommand({
    StackName: stack.id,
    ClientRequestToken: randomUUID(),
  });
  const answer = await clients.callUnless(isProtected, "cloudformation:DeleteStack", (options) =>
    clients.cloudFormation.send(command, options),
  );
  if (answer === undefined)
    throw new StackOperationError(
      clients.stack,
      `it is protected against termination: disable that with aws cloudformation update-termination-protection --no-enable-termination-protection --stack-name ${clients.stack}, then delete it again.`,
    );
  if (!wait) return;
  const left = await untilFinished(clients, stack.id, { feed, isOwn: true, onEvent });
  if (left !== undefined) throw await operationError(clients, left, "deletion");
}

function isProtected(error: unknown): boolean {
  return (
    getErrorName(error) === "ValidationError" &&
    /TerminationProtection/.test(getErrorMessage(error))
  );
}
