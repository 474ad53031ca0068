import { DeleteTableCommand, DescribeTableCommand } from "@aws-sdk/client-dynamodb";
import { StackOperationError, ValidationError } from "zae-limiter";
import { assertAccount, callerAccount } from "../aws/account.ts";
import { isTableAbsent } from "../aws/aws-errors.ts";
import { withClients, type AwsClients } from "../aws/clients.ts";
import { resolvePlace, type StackPlace } from "../aws/place.ts";
import type { StackEvent } from "./events.ts";
import { waitForOthers } from "./follow.ts";
import { removeStack } from "./remove-stack.ts";
import { isInProgress, isInReview, isOurStack, readStack, type StackState } from "./stack-state.ts";

/** Options of `deleteStack`. */
export interface DeleteOptions extends StackPlace {
  /** Whether its table is deleted too, with everything in it. @default false */
  readonly withData?: boolean;
  /** Called for each event of the stack. */
  readonly onEvent?: (event: StackEvent) => void;
  /** Called with a sentence that says what else it waits for. */
  readonly onNotice?: (text: string) => void;
  /** Whether to wait until the stack is gone; `withData` needs it. @default true */
  readonly wait?: boolean;
}

/** The result of a deletion. */
export interface DeleteReport {
  readonly stack: string;
  readonly region: string;
  /** "absent" if there was no stack; "started" if it was not waited for. */
  readonly outcome: "deleted" | "started" | "absent";
  /** What still exists, by names: the table unless it was deleted, and the archive. */
  readonly retained: readonly string[];
}

/**
 * Deletes a stack, which need not exist. Its table and its archive are retained, unless `withData`
 * says that the table goes too.
 *
 * @example const { retained } = await deleteStack({ stack: "limits" });
 */
export async function deleteStack(options: DeleteOptions = {}): Promise<DeleteReport> {
  const place = resolvePlace(options);
  const { withData = false, wait = true } = options;
  if (withData && !wait)
    throw new ValidationError(
      "wait",
      wait,
      "must not be false with withData: the table is deleted when the stack is gone",
    );
  return withClients(place, async (clients) => {
    if (place.account !== undefined) assertAccount(place, await callerAccount(clients));
    const report = { stack: clients.stack, region: clients.region };
    const stack = await findDeletable(clients, options);
    if (stack === undefined) return { ...report, outcome: "absent", retained: [] };
    if (withData) await assertDeletable(clients);
    await removeStack(clients, options);
    if (withData) {
      await assertStillGone(clients);
      await deleteTable(clients);
    }
    const archive = stack.outputs["AuditArchiveBucketName"];
    const table = withData || isInReview(stack) ? [] : [clients.stack];
    const retained = [...table, ...(archive === undefined ? [] : [archive])];
    return { ...report, outcome: wait ? "deleted" : "started", retained };
  });
}

/** Waits until no operation is changing the stack; throws if zae-limiter did not create it. */
async function findDeletable(
  clients: AwsClients,
  options: DeleteOptions,
): Promise<StackState | undefined> {
  const stack = await readStack(clients);
  if (stack === undefined) return undefined;
  if (!(await isOurStack(clients, stack)))
    throw new StackOperationError(
      clients.stack,
      "it was not created by zae-limiter, so it is left alone: check the name and the region.",
    );
  return isInProgress(stack) ? waitForOthers(clients, stack, options) : stack;
}

/** Throws, before anything is deleted, for a table that DynamoDB would not delete. */
async function assertDeletable(clients: AwsClients): Promise<void> {
  const { stack, dynamoDb } = clients;
  const command = new DescribeTableCommand({ TableName: stack });
  const described = await clients.callUnless(isTableAbsent, "dynamodb:DescribeTable", (options) =>
    dynamoDb.send(command, options),
  );
  if (described?.Table?.DeletionProtectionEnabled === true)
    throw new StackOperationError(
      stack,
      `its table is protected against deletion: disable that with zae-limiter deploy --stack ${stack} --no-deletion-protection, then delete it again.`,
    );
}

/** Throws if the stack was deployed again meanwhile and has adopted the table. */
async function assertStillGone(clients: AwsClients): Promise<void> {
  if ((await readStack(clients)) !== undefined)
    throw new StackOperationError(
      clients.stack,
      "it was deployed again while it was being deleted, so its table was kept: run delete again to remove it.",
    );
}

async function deleteTable(clients: AwsClients): Promise<void> {
  const command = new DeleteTableCommand({ TableName: clients.stack });
  await clients.callUnless(isTableAbsent, "dynamodb:DeleteTable", (options) =>
    clients.dynamoDb.send(command, options),
  );
}
