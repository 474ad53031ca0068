import {
  DescribeStacksCommand,
  ListChangeSetsCommand,
  type Stack,
} from "@aws-sdk/client-cloudformation";
import { StackAlreadyExistsError, StackOperationError } from "zae-limiter";
import { isStackAbsent } from "../aws/aws-errors.ts";
import type { AwsClients } from "../aws/clients.ts";
import { isOurs } from "../options/tags.ts";

/** A stack as CloudFormation shows it. */
export interface StackState {
  readonly id: string;
  readonly status: string;
  readonly reason: string | undefined;
  readonly parameters: Readonly<Record<string, string>>;
  readonly tags: Readonly<Record<string, string>>;
  readonly outputs: Readonly<Record<string, string>>;
}

/** Reads a stack by its name or its id; undefined if there is none. */
export async function readStack(
  clients: AwsClients,
  nameOrId: string = clients.stack,
): Promise<StackState | undefined> {
  const command = new DescribeStacksCommand({ StackName: nameOrId });
  const described = await clients.callUnless(
    isStackAbsent,
    "cloudformation:DescribeStacks",
    (options) => clients.cloudFormation.send(command, options),
  );
  const [stack] = described?.Stacks ?? [];
  return stack === undefined || stack.StackStatus === "DELETE_COMPLETE"
    ? undefined
    : toState(stack);
}

function toState(stack: Stack): StackState {
  const { Parameters = [], Tags = [], Outputs = [] } = stack;
  return {
    id: stack.StackId!,
    status: stack.StackStatus!,
    reason: stack.StackStatusReason,
    parameters: record(Parameters.map((each) => [each.ParameterKey, each.ParameterValue])),
    tags: record(Tags.map(({ Key, Value }) => [Key, Value])),
    outputs: record(Outputs.map(({ OutputKey, OutputValue }) => [OutputKey, OutputValue])),
  };
}

function record(
  pairs: readonly (readonly [string | undefined, string | undefined])[],
): Record<string, string> {
  return Object.fromEntries(pairs.map(([name = "", value = ""]) => [name, value]));
}

/** Whether CloudFormation is changing a stack. One in review is only a name that is taken. */
export function isInProgress({ status }: StackState): boolean {
  return status.endsWith("_IN_PROGRESS") && status !== "REVIEW_IN_PROGRESS";
}

/** Whether a stack is only a reserved name, because no change set of it was ever executed. */
export function isInReview({ status }: StackState): boolean {
  return status === "REVIEW_IN_PROGRESS";
}

/** Whether the creation of a stack failed; nothing can be done with it but to delete it. */
export function isLeftOver({ status }: StackState): boolean {
  return ["ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED"].includes(status);
}

/** How the names of our change sets begin. */
export const CHANGE_SET_PREFIX = "zae-limiter-";

/** Whether a stack was made by zae-limiter. */
export async function isOurStack(clients: AwsClients, stack: StackState): Promise<boolean> {
  if (isOurs(stack.tags)) return true;
  if (!isInReview(stack)) return false;
  // A stack in review has no tags yet, but the change set that reserved its name.
  const names = await changeSetNames(clients);
  return names.every((name) => name.startsWith(CHANGE_SET_PREFIX));
}

/** Throws if a stack was not made by zae-limiter. */
export async function assertOurs(clients: AwsClients, stack: StackState): Promise<void> {
  if (!(await isOurStack(clients, stack))) throw new StackAlreadyExistsError(clients.stack);
}

/** The names of the change sets of a stack. */
export async function changeSetNames(clients: AwsClients): Promise<readonly string[]> {
  const command = new ListChangeSetsCommand({ StackName: clients.stack });
  const listed = await clients.callUnless(
    isStackAbsent,
    "cloudformation:ListChangeSets",
    (options) => clients.cloudFormation.send(command, options),
  );
  return (listed?.Summaries ?? []).map(({ ChangeSetName = "" }) => ChangeSetName);
}

/**
 * Throws for a stack that can be neither updated nor deleted and made again without a person, and
 * for one of the Python zae-limiter: CloudFormation cannot change the indexes of its table, and
 * would give it our Lambda before it finds that out.
 */
export function assertUpdatable(
  clients: AwsClients,
  { status, reason, parameters }: StackState,
): void {
  if (parameters["SchemaVersion"]?.startsWith("0."))
    throw new StackOperationError(
      clients.stack,
      `it was deployed by the Python zae-limiter and cannot be updated. Deploy a new stack with zae-limiter deploy --stack NEW, then copy the items: zae-limiter upgrade --stack ${clients.stack} --into NEW`,
    );
  const why = reason === undefined ? "" : ` (${reason})`;
  if (status === "UPDATE_ROLLBACK_FAILED")
    throw new StackOperationError(
      clients.stack,
      `it is in UPDATE_ROLLBACK_FAILED${why}: continue its rollback in the console, or with aws cloudformation continue-update-rollback --stack-name ${clients.stack}, then deploy again.`,
    );
  if (status === "DELETE_FAILED")
    throw new StackOperationError(
      clients.stack,
      `it is in DELETE_FAILED${why}: finish its deletion with zae-limiter delete --stack ${clients.stack}, then deploy again.`,
    );
}
