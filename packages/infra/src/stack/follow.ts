import { StackOperationError } from "zae-limiter";
import type { AwsClients } from "../aws/clients.ts";
import { EventFeed, lastOperation, STACK_TYPE, type StackEvent } from "./events.ts";
import { isInProgress, readStack, type StackState } from "./stack-state.ts";

/** Callbacks while waiting for a stack. */
export interface Listeners {
  readonly onEvent?: ((event: StackEvent) => void) | undefined;
  /** Called with a sentence that says what it waits for. */
  readonly onNotice?: ((text: string) => void) | undefined;
}

/** Three hours on AWS; CloudFormation itself gives up on most resources within one. */
const MAX_POLLS = 4500;

/**
 * How many reads may pass before an operation shows: answers of AWS may be some seconds old, and
 * then show the earlier state of the stack.
 */
const MAX_STALE_POLLS = 12;

/**
 * Waits until CloudFormation has finished with a stack, and returns its state; undefined if it was
 * deleted. `feed` has read what happened before. An operation of this process (`isOwn`) is over
 * when an event says so: the status alone may be an earlier one.
 */
export async function untilFinished(
  clients: AwsClients,
  stackId: string,
  { feed, isOwn, onEvent }: Listeners & { readonly feed: EventFeed; readonly isOwn: boolean },
): Promise<StackState | undefined> {
  let [hasBegun, hasEnded] = [false, false];
  for (let polls = 0; polls < MAX_POLLS; polls += 1) {
    const hadEnded = hasEnded;
    // The status comes first: events that came before it are then certainly read.
    const stack = await readStack(clients, stackId);
    for (const event of await feed.next()) {
      onEvent?.(event);
      hasBegun = true;
      if (event.resourceType === STACK_TYPE) hasEnded = !event.status.endsWith("_IN_PROGRESS");
    }
    const isStale = isOwn && !hadEnded && (hasBegun || polls < MAX_STALE_POLLS);
    if ((stack === undefined || !isInProgress(stack)) && !isStale) return stack;
    await clients.sleep(clients.pace.pollMs);
  }
  throw new StackOperationError(
    clients.stack,
    "CloudFormation has not finished with it for hours: check it in the console, then run the command again.",
  );
}

/** Waits for an operation that another process started. */
export async function waitForOthers(
  clients: AwsClients,
  stack: StackState,
  { onEvent, onNotice }: Listeners,
): Promise<StackState | undefined> {
  onNotice?.(`Stack ${clients.stack} is in ${stack.status}; waiting until that has ended.`);
  const feed = new EventFeed(clients, stack.id);
  await feed.skip();
  return untilFinished(clients, stack.id, { feed, isOwn: false, onEvent });
}

/** What CloudFormation was doing to a stack, in the words of our errors. */
export type Operation = "creation" | "update" | "deletion";

/** The error of an operation that failed: the first resource that failed, and what to do. */
export async function operationError(
  clients: AwsClients,
  { id, status, reason }: Pick<StackState, "id" | "status" | "reason">,
  operation: Operation,
): Promise<StackOperationError> {
  const events = await lastOperation(clients, id);
  const failed = events.filter((event) => event.status.endsWith("_FAILED"));
  const first = failed.find(isCause);
  const where =
    first === undefined
      ? `its ${operation} failed${reason === undefined ? "" : `: ${trimReason(reason)}`}.`
      : `its ${operation} failed at ${first.logicalId} (${first.resourceType}): ${trimReason(first.reason ?? first.status)}.`;
  return new StackOperationError(
    clients.stack,
    `${where} ${whatIsLeft(clients, status)}`,
    failed.map((event) => `${event.logicalId} ${event.status}: ${event.reason ?? ""}`),
  );
}

/** Whether an event is a failure of its own: others are cancelled because of it. */
function isCause({ resourceType, reason }: StackEvent): boolean {
  return resourceType !== STACK_TYPE && !/cancelled/i.test(reason ?? "");
}

function whatIsLeft({ stack }: AwsClients, status: string): string {
  switch (status) {
    case "ROLLBACK_COMPLETE":
      return "Everything was rolled back (ROLLBACK_COMPLETE): correct the cause and deploy again, which deletes the empty stack first.";
    case "UPDATE_ROLLBACK_COMPLETE":
      return "The stack is as it was before (UPDATE_ROLLBACK_COMPLETE): correct the cause and deploy again.";
    case "UPDATE_ROLLBACK_FAILED":
      return `The rollback failed too (UPDATE_ROLLBACK_FAILED): continue it with aws cloudformation continue-update-rollback --stack-name ${stack}, then deploy again.`;
    case "DELETE_FAILED":
      return "The rest was deleted (DELETE_FAILED): correct the cause and delete again.";
    default:
      return `The stack is in ${status}: check it in the console, then run the command again.`;
  }
}

function trimReason(reason: string): string {
  return reason.trim().replace(/\.$/, "");
}
