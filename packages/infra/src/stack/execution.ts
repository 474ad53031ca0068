import { PermissionDenied } from "zae-limiter";
import type { AwsClients } from "../aws/clients.ts";
import { uploadCode } from "../code/code-bucket.ts";
import { execute, orDiscarded, type ReadyChangeSet } from "./change-set.ts";
import { EventFeed } from "./events.ts";
import { operationError, untilFinished, type Listeners } from "./follow.ts";
import type { Plan } from "./plan.ts";
import { readStack, type StackState } from "./stack-state.ts";

/** Executes a change set and waits; undefined if another process was faster. */
export async function executeChangeSet(
  clients: AwsClients,
  {
    code,
    changeSet,
    existing,
  }: {
    readonly code: Plan["code"];
    readonly changeSet: ReadyChangeSet;
    readonly existing: StackState | undefined;
  },
  {
    account,
    wait = true,
    onEvent,
  }: Listeners & {
    readonly account: string;
    readonly wait?: boolean;
  },
): Promise<StackState | undefined> {
  if (code !== undefined)
    await orDiscarded(clients, changeSet, () =>
      uploadCode(clients, code.packages, { bucket: code.bucket, account }),
    );
  const stack = existing ?? (await readStack(clients));
  if (stack === undefined) return undefined;
  const feed = new EventFeed(clients, stack.id);
  await feed.skip();
  const begun = await orDiscarded(
    clients,
    changeSet,
    () => execute(clients, changeSet),
    (error) => error instanceof PermissionDenied,
  );
  if (!begun) return undefined;
  if (!wait) return stack;
  const finished = await untilFinished(clients, stack.id, { feed, isOwn: true, onEvent });
  const operation = existing === undefined ? "creation" : "update";
  const wanted = existing === undefined ? "CREATE_COMPLETE" : "UPDATE_COMPLETE";
  if (finished?.status === wanted) return finished;
  const end = finished ?? { id: stack.id, status: "DELETE_COMPLETE", reason: undefined };
  throw await operationError(clients, end, operation);
}
