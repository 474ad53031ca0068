import {
  DescribeStacksCommand,
  ListChangeSetsCommand,
  type Stack,
} from "@aws-sdk/client-cloudformation";
import { StackAlreadyExistsError, StackOperationError } from "zae-limiter";
import { messageOf, nameOf } from "../aws/aws-errors.ts";
import type { AwsClients } from "../aws/clients.ts";
import { CHANGE_SET_PREFIX } from "./change-set.ts";
import { isOurs } from "./tags.ts";

/** A stack as CloudFormation shows it. */
export interface StackState {
  readonly id: string;
  readonly status: string;
  readonly reason: string | undefined;
  readonly parameters: Readonly<Record<string, string>>;
  readonly tags: Readonly<Record<string, string>>;
  readonly outputs: Readonly<Record<string, string>>;
}

/** Looks at a stack, by its name or by its id; undefined if there is none. */
export async function readStack(
  clients: AwsClients,
  nameOrId: string = clients.stack,
): Promise<StackState | undefined> {
  const command = new DescribeStacksCommand({ StackName: nameOrId });
  try {
    const { Stacks = [] } = await clients.call(
      "cloudformation:DescribeStacks",
      () => clients.cloudFormation.send(command),
      isMissing,
    );
    const [stack] = Stacks;
    return stack === undefined || stack.StackStatus === "DELETE_COMPLETE"
      ? undefined
      : stateOf(stack);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** CloudFormation has no error of its own for a stack that does not exist. */
export function isMissing(error: unknown): boolean {
  return nameOf(error) === "ValidationError" && /does not exist/.test(messageOf(error));
}

type Pair = readonly [string | undefined, string | undefined];

function stateOf(stack: Stack): StackState {
  const pairs = (list: readonly Pair[]): Record<string, string> =>
    Object.fromEntries(list.map(([name = "", value = ""]) => [name, value]));
  const { Parameters = [], Tags = [], Outputs = [] } = stack;
  return {
    id: stack.StackId!,
    status: stack.StackStatus!,
    reason: stack.StackStatusReason,
    parameters: pairs(Parameters.map((each) => [each.ParameterKey, each.ParameterValue])),
    tags: pairs(Tags.map(({ Key, Value }) => [Key, Value])),
    outputs: pairs(Outputs.map(({ OutputKey, OutputValue }) => [OutputKey, OutputValue])),
  };
}

/** Whether CloudFormation is changing a stack. One in review is only a name that is taken. */
export function isInProgress({ status }: StackState): boolean {
  return status.endsWith("_IN_PROGRESS") && status !== "REVIEW_IN_PROGRESS";
}

/** Whether a stack was never more than a name: whoever took it executed no change set. */
export function isInReview({ status }: StackState): boolean {
  return status === "REVIEW_IN_PROGRESS";
}

/** Whether the creation of a stack failed; nothing can be done with it but to delete it. */
export function isLeftOver({ status }: StackState): boolean {
  return ["ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED"].includes(status);
}

/** Throws if a stack was not made by zae-limiter. */
export async function assertOurs(clients: AwsClients, stack: StackState): Promise<void> {
  if (isOurs(stack.tags)) return;
  // A stack in review has no tags yet; whoever reserved its name has left a change set.
  if (isInReview(stack) && (await hasOnlyOurChangeSets(clients))) return;
  throw new StackAlreadyExistsError(clients.stack);
}

async function hasOnlyOurChangeSets(clients: AwsClients): Promise<boolean> {
  const command = new ListChangeSetsCommand({ StackName: clients.stack });
  const { Summaries = [] } = await clients.call("cloudformation:ListChangeSets", () =>
    clients.cloudFormation.send(command),
  );
  return Summaries.every(
    ({ ChangeSetName }) => ChangeSetName?.startsWith(CHANGE_SET_PREFIX) === true,
  );
}

/** Throws for a stack that can be neither updated nor deleted and made again without a person. */
export function assertUpdatable(clients: AwsClients, { status, reason }: StackState): void {
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
