import { StackOperationError } from "zae-limiter";
import type { StackOptions } from "zae-limiter/dynamodb";
import { assertAccount, callerAccount } from "../aws/account.ts";
import { withClients, type AwsClients } from "../aws/clients.ts";
import { resolvePlace, type CheckedPlace, type StackPlace } from "../aws/place.ts";
import { checkBucketName } from "../code/code-bucket.ts";
import { toParameters } from "../options/parameters.ts";
import {
  destructive,
  discard,
  orDiscarded,
  Overtaken,
  prepareChangeSet,
  type ReadyChangeSet,
  type ResourceChange,
} from "./change-set.ts";
import { STACK_TYPE, type StackEvent } from "./events.ts";
import { executeChangeSet } from "./execution.ts";
import { finishDeployment } from "./finish.ts";
import { operationError, waitForOthers } from "./follow.ts";
import { removeStack } from "./remove-stack.ts";
import {
  assertOurs,
  assertUpdatable,
  isInProgress,
  isInReview,
  isLeftOver,
  readStack,
  type StackState,
} from "./stack-state.ts";
import { planDeployment } from "./plan.ts";

/** Options of `deployStack`. */
export interface DeployOptions extends StackPlace {
  /** Options of the stack; what is left out keeps the value that the stack has, or the default. */
  readonly stackOptions?: StackOptions;
  /** The bucket that holds the functions' code. @default one of the account's, made if needed */
  readonly codeBucket?: string;
  /**
   * Called with all planned changes before any is made; returns whether to go on.
   * @default only additions and changes in place go on
   */
  readonly confirm?: (changes: readonly ResourceChange[]) => boolean | Promise<boolean>;
  /** Only reports what would change. @default false */
  readonly dryRun?: boolean;
  /** Called for each event of the stack. */
  readonly onEvent?: (event: StackEvent) => void;
  /** Called with a sentence that says what else it waits for. */
  readonly onNotice?: (text: string) => void;
  /** Whether to wait until the stack is ready. @default true */
  readonly wait?: boolean;
}

/** The result of a deployment. */
export interface DeployReport {
  readonly stack: string;
  readonly region: string;
  readonly account: string;
  /**
   * "planned" of a dry run that would change something; "started" if it was not waited for; then
   * the version record is written by the next deployment.
   */
  readonly outcome: "created" | "updated" | "unchanged" | "started" | "declined" | "planned";
  readonly changes: readonly ResourceChange[];
  readonly outputs: Readonly<Record<string, string>>;
}

/**
 * Creates a stack, or updates the one that exists, by a change set. May be run again at any time:
 * it continues what was interrupted, and waits for operations that others have started.
 *
 * @example
 * const stackOptions = { enableTracing: true };
 * const { outcome } = await deployStack({ stack: "limits", stackOptions });
 */
export async function deployStack(options: DeployOptions = {}): Promise<DeployReport> {
  const place = resolvePlace(options);
  checkInput(place, options);
  return withClients(place, async (clients) => {
    const account = await callerAccount(clients);
    assertAccount(place, account, options.stackOptions);
    return deployUntilDone(clients, { ...options, account });
  });
}

/**
 * A stack that exists may have any capacity; whether options fit is checked again with what it has.
 */
const WIDEST_CAPACITY = {
  BillingMode: "PROVISIONED",
  ReadCapacity: "1",
  WriteCapacity: "1",
  IndexReadCapacity: "1",
  IndexWriteCapacity: "1",
  MaxReadCapacity: "Infinity",
  MaxWriteCapacity: "Infinity",
};

/** Everything that can be checked without a request is checked before the first. */
export function checkInput(
  { stack }: CheckedPlace,
  { stackOptions = {}, codeBucket }: Pick<DeployOptions, "stackOptions" | "codeBucket">,
): void {
  toParameters(stack, stackOptions, WIDEST_CAPACITY);
  if (codeBucket !== undefined) checkBucketName(codeBucket);
}

/** Options of a deployment whose account is known. */
export interface Deployment extends DeployOptions {
  readonly account: string;
  /** Leaves an existing stack unchanged. */
  readonly onlyMissing?: boolean;
}

/**
 * Each round reads the state of the stack first; a round fails only if another process deploys it
 * too.
 */
const MAX_ROUNDS = 10;

/** Deploys, and retries if other processes deploy at the same time. */
export async function deployUntilDone(
  clients: AwsClients,
  deployment: Deployment,
): Promise<DeployReport> {
  return untilDone(clients, () => tryDeploy(clients, deployment));
}

/** Repeats attempts until one is not overtaken by another process. */
export async function untilDone<Result>(
  clients: AwsClients,
  attempt: () => Promise<Result | undefined>,
): Promise<Result> {
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const result = await attempt().catch((error: unknown) => {
      if (error instanceof Overtaken) return undefined;
      throw error;
    });
    if (result !== undefined) return result;
    await clients.sleep(clients.pace.pollMs);
  }
  throw new StackOperationError(
    clients.stack,
    "other processes keep changing it: try again later.",
  );
}

/** One attempt; undefined if another process changed the stack meanwhile. */
async function tryDeploy(
  clients: AwsClients,
  deployment: Deployment,
): Promise<DeployReport | undefined> {
  const { stackOptions = {}, dryRun = false, wait = true, onlyMissing = false } = deployment;
  const report = { stack: clients.stack, region: clients.region, account: deployment.account };
  const found = await readStack(clients);
  if (found !== undefined) await assertOurs(clients, found);
  if (found !== undefined && isInProgress(found)) {
    await waitForOthers(clients, found, deployment);
    return undefined;
  }
  if (found !== undefined && isLeftOver(found)) {
    if (onlyMissing) throw await operationError(clients, found, "creation");
    return clearAway(clients, found, deployment);
  }
  const existing = found !== undefined && isInReview(found) ? undefined : found;
  if (existing !== undefined && onlyMissing)
    return { ...report, outcome: "unchanged", changes: [], outputs: existing.outputs };
  if (existing !== undefined) assertUpdatable(clients, existing);

  const plan = await planDeployment(clients, existing, deployment);
  const changeSet = await prepareChangeSet(clients, plan.wanted);
  if (changeSet === undefined) {
    // Completes a deployment that was interrupted after its stack was ready.
    if (!dryRun) await finishDeployment(clients, { ...plan, stackOptions });
    const outputs = existing?.outputs ?? {};
    return { ...report, outcome: "unchanged", changes: [], outputs };
  }
  const { changes } = changeSet;
  const refused = await orDiscarded(clients, changeSet, () => refusal(changeSet, deployment));
  if (refused !== undefined) {
    await discard(clients, changeSet);
    return { ...report, outcome: refused, changes, outputs: existing?.outputs ?? {} };
  }
  const { code } = plan;
  const finished = await executeChangeSet(clients, { code, changeSet, existing }, deployment);
  if (finished === undefined) return undefined;
  if (!wait) return { ...report, outcome: "started", changes, outputs: {} };
  await finishDeployment(clients, { ...plan, stackOptions });
  const outcome = existing === undefined ? "created" : "updated";
  return { ...report, outcome, changes, outputs: finished.outputs };
}

/** Why the change set is not executed, if it is not. */
async function refusal(
  { changes }: ReadyChangeSet,
  { dryRun = false, confirm = onlyHarmless }: Deployment,
): Promise<"planned" | "declined" | undefined> {
  if (dryRun) return "planned";
  return (await confirm(changes)) ? undefined : "declined";
}

function onlyHarmless(changes: readonly ResourceChange[]): boolean {
  return destructive(changes).length === 0;
}

/**
 * Deletes a stack whose creation failed, if that is agreed to: nothing else can be done with it,
 * and nothing is in it.
 */
async function clearAway(
  clients: AwsClients,
  { status, reason }: StackState,
  deployment: Deployment,
): Promise<DeployReport | undefined> {
  const change: ResourceChange = {
    action: "remove",
    logicalId: clients.stack,
    resourceType: STACK_TYPE,
    physicalId: clients.stack,
    because: [`its creation failed (${status})`, ...(reason === undefined ? [] : [reason])],
  };
  const refused = await refusal({ name: "", type: "CREATE", changes: [change] }, deployment);
  if (refused !== undefined) {
    const { stack, region } = clients;
    const { account } = deployment;
    return { stack, region, account, outcome: refused, changes: [change], outputs: {} };
  }
  deployment.onNotice?.(
    `An earlier creation of stack ${clients.stack} failed; the empty stack is deleted first.`,
  );
  await removeStack(clients, deployment);
  return undefined;
}
