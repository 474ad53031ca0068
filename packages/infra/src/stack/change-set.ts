import { createHash, randomUUID } from "node:crypto";
import {
  CreateChangeSetCommand,
  DeleteChangeSetCommand,
  DeleteStackCommand,
  DescribeChangeSetCommand,
  ExecuteChangeSetCommand,
  type DescribeChangeSetCommandOutput,
  type Parameter,
  type ResourceChange as AwsChange,
} from "@aws-sdk/client-cloudformation";
import { StackOperationError } from "zae-limiter";
import { getErrorMessage, getErrorName } from "../aws/aws-errors.ts";
import type { AwsClients } from "../aws/clients.ts";
import { CHANGE_SET_PREFIX, changeSetNames, isInReview, readStack } from "./stack-state.ts";

/** One change that a change set would make. */
export interface ResourceChange {
  /** "replace-if": CloudFormation cannot tell before whether it has to replace the resource. */
  readonly action: "add" | "import" | "modify" | "replace" | "replace-if" | "remove";
  readonly logicalId: string;
  readonly resourceType: string;
  readonly physicalId: string | undefined;
  /** What causes the change: names of properties, parameters or tags. */
  readonly because: readonly string[];
}

/** The wanted state of a stack. */
export interface Wanted {
  readonly type: "CREATE" | "UPDATE";
  /** Undefined: that of the stack. */
  readonly templateBody: string | undefined;
  readonly parameters: readonly Parameter[];
  readonly tags: Readonly<Record<string, string>>;
  /** Whether a table that exists is made part of the stack. */
  readonly importExisting: boolean;
}

/** A change set that can be executed. */
export interface ReadyChangeSet {
  readonly name: string;
  readonly type: Wanted["type"];
  readonly changes: readonly ResourceChange[];
}

/**
 * The changes that destroy something, or may: those to ask about.
 *
 * @example
 * const confirm = (changes) => destructive(changes).length === 0;
 */
export function destructive(changes: readonly ResourceChange[]): readonly ResourceChange[] {
  return changes.filter(({ action }) => ["replace", "replace-if", "remove"].includes(action));
}

/**
 * Asks CloudFormation what would change; undefined if nothing would. The name of a change set is
 * made from its content, so a deployment that is run again, or by several processes, finds the one
 * that is there.
 */
export async function prepareChangeSet(
  clients: AwsClients,
  wanted: Wanted,
): Promise<ReadyChangeSet | undefined> {
  const name = `${CHANGE_SET_PREFIX}${fingerprint(wanted)}`;
  // A change set that was made for another state of the stack makes room for a new one.
  for (const isFirst of [true, false]) {
    const isNew = await createChangeSet(clients, name, wanted);
    const described = await untilReady(clients, name);
    if (described?.Status === "CREATE_COMPLETE" && described.ExecutionStatus === "AVAILABLE")
      return { name, type: wanted.type, changes: await changesIn(clients, name, described) };
    // One that was found may have failed because of what the stack was then.
    if (described?.Status === "FAILED" && (isNew || !isFirst)) {
      const reason = described.StatusReason ?? "";
      await discard(clients, { name, type: wanted.type });
      if (/didn't contain changes|No updates are to be performed/i.test(reason)) return undefined;
      throw new StackOperationError(clients.stack, `CloudFormation refuses the change: ${reason}`);
    }
    if (described?.ExecutionStatus === "EXECUTE_IN_PROGRESS")
      throw new Overtaken("Another process is executing this change set.");
    // It was executed, or belongs to an earlier state of the stack.
    await discard(clients, { name, type: "UPDATE" });
  }
  throw new Overtaken("Another process removes this change set whenever it is created.");
}

/** Starts to execute a change set; false if another process was faster. */
export async function execute(clients: AwsClients, { name }: ReadyChangeSet): Promise<boolean> {
  const command = new ExecuteChangeSetCommand({
    StackName: clients.stack,
    ChangeSetName: name,
    // A repetition of this request, whose answer was lost, is not a second execution.
    ClientRequestToken: randomUUID(),
  });
  const answer = await clients.callUnless(isTaken, "cloudformation:ExecuteChangeSet", (options) =>
    clients.cloudFormation.send(command, options),
  );
  return answer !== undefined;
}

function isTaken(error: unknown): boolean {
  return /^(InvalidChangeSetStatus|ChangeSetNotFound)/.test(getErrorName(error));
}

/** Deletes a change set that is not executed; with it the empty stack that it was to create. */
export async function discard(
  clients: AwsClients,
  { name, type }: Pick<ReadyChangeSet, "name" | "type">,
): Promise<void> {
  const names = { StackName: clients.stack, ChangeSetName: name };
  await clients.callUnless(isGone, "cloudformation:DeleteChangeSet", (options) =>
    clients.cloudFormation.send(new DeleteChangeSetCommand(names), options),
  );
  if (type !== "CREATE") return;
  const stack = await readStack(clients);
  // Another process may be creating the stack by now, or be about to.
  if (stack === undefined || !isInReview(stack)) return;
  if ((await changeSetNames(clients)).length > 0) return;
  await clients.call("cloudformation:DeleteStack", (options) =>
    clients.cloudFormation.send(new DeleteStackCommand({ StackName: stack.id }), options),
  );
}

/**
 * Does the work before an execution. If it fails, discards the change set, unless `certain` says
 * that it may have been executed.
 */
export async function orDiscarded<Result>(
  clients: AwsClients,
  changeSet: ReadyChangeSet,
  work: () => Promise<Result>,
  certain: (error: unknown) => boolean = () => true,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!certain(error)) throw error;
    // The first failure is the one to report; a change set that stays does no harm.
    await discard(clients, changeSet).catch(() => undefined);
    throw error;
  }
}

function isGone(error: unknown): boolean {
  return /^ChangeSetNotFound|^ValidationError$/.test(getErrorName(error));
}

/** Has CloudFormation create a change set; false if there is one of this name. */
async function createChangeSet(
  clients: AwsClients,
  name: string,
  wanted: Wanted,
): Promise<boolean> {
  const command = new CreateChangeSetCommand({
    StackName: clients.stack,
    ChangeSetName: name,
    ClientToken: randomUUID(),
    ChangeSetType: wanted.type,
    ...(wanted.templateBody === undefined
      ? { UsePreviousTemplate: true }
      : { TemplateBody: wanted.templateBody }),
    Parameters: [...wanted.parameters],
    Tags: Object.entries(wanted.tags).map(([Key, Value]) => ({ Key, Value })),
    Capabilities: ["CAPABILITY_NAMED_IAM"],
    ...(wanted.importExisting && { ImportExistingResources: true }),
  });
  try {
    const made = await clients.callUnless(
      (error) => getErrorName(error) === "AlreadyExistsException",
      "cloudformation:CreateChangeSet",
      (options) => clients.cloudFormation.send(command, options),
    );
    return made !== undefined;
  } catch (error) {
    // The error of AWS is the cause of ours.
    const said = error instanceof Error ? error.cause : undefined;
    throw isOvertaken(said) ? new Overtaken(getErrorMessage(said)) : error;
  }
}

/** The stack is no longer what it was when the change was prepared. */
export class Overtaken extends Error {}

function isOvertaken(error: unknown): boolean {
  return (
    getErrorName(error) === "ValidationError" &&
    /can not be updated|already exists and cannot be created again|does not exist$/.test(
      getErrorMessage(error),
    )
  );
}

/** A change set of our size is created within seconds; on AWS this limit is ten minutes. */
const MAX_POLLS = 240;

async function untilReady(
  clients: AwsClients,
  ChangeSetName: string,
): Promise<DescribeChangeSetCommandOutput | undefined> {
  for (let polls = 0; polls < MAX_POLLS; polls += 1) {
    const described = await changeSetPage(clients, ChangeSetName, undefined);
    if (described === undefined || !/PENDING|IN_PROGRESS/.test(described.Status ?? ""))
      return described;
    await clients.sleep(clients.pace.pollMs);
  }
  throw new StackOperationError(
    clients.stack,
    "CloudFormation did not finish the change set in time: deploy again later.",
  );
}

async function changeSetPage(
  clients: AwsClients,
  ChangeSetName: string,
  NextToken: string | undefined,
): Promise<DescribeChangeSetCommandOutput | undefined> {
  const command = new DescribeChangeSetCommand({
    StackName: clients.stack,
    ChangeSetName,
    NextToken,
  });
  return clients.callUnless(isGone, "cloudformation:DescribeChangeSet", (options) =>
    clients.cloudFormation.send(command, options),
  );
}

/** A template has at most 500 resources, and a page holds about a hundred changes. */
const MAX_PAGES = 500;

async function changesIn(
  clients: AwsClients,
  name: string,
  first: DescribeChangeSetCommandOutput,
): Promise<readonly ResourceChange[]> {
  const changes: ResourceChange[] = [];
  let page: DescribeChangeSetCommandOutput | undefined = first;
  for (let pages = 0; pages < MAX_PAGES && page !== undefined; pages += 1) {
    for (const { ResourceChange: change } of page.Changes ?? [])
      if (change !== undefined) changes.push(toChange(change));
    page =
      page.NextToken === undefined ? undefined : await changeSetPage(clients, name, page.NextToken);
  }
  return changes;
}

/** What a change set says about one resource. */
export function toChange(change: AwsChange): ResourceChange {
  const causes = (change.Details ?? []).map(
    ({ Target, CausingEntity }) => Target?.Name ?? CausingEntity ?? Target?.Attribute ?? "",
  );
  const scopes = (change.Scope ?? []).filter((scope) => scope !== "Properties");
  return {
    action: toAction(change),
    logicalId: change.LogicalResourceId ?? "",
    resourceType: change.ResourceType ?? "",
    physicalId: change.PhysicalResourceId,
    because: [...new Set([...causes, ...scopes])].filter(Boolean),
  };
}

function toAction({ Action, Replacement }: AwsChange): ResourceChange["action"] {
  switch (Action) {
    case "Add":
      return "add";
    case "Import":
      return "import";
    case "Remove":
      return "remove";
    case "Modify":
    case "SyncWithActual":
      if (Replacement === "True") return "replace";
      return Replacement === "Conditional" ? "replace-if" : "modify";
    default:
      // "Dynamic", and any value that CloudFormation may add.
      return "replace-if";
  }
}

function fingerprint({ type, templateBody, parameters, tags, importExisting }: Wanted): string {
  const sorted = Object.keys(tags)
    .toSorted()
    .map((name) => [name, tags[name]]);
  const content = [type, templateBody ?? "", parameters, sorted, importExisting];
  return createHash("sha256").update(JSON.stringify(content)).digest("hex").slice(0, 32);
}
