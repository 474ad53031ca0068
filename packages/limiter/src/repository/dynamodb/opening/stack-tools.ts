import { InfrastructureError, ValidationError } from "../../../core/errors.ts";
import { checkOptions, optionNames } from "../../../core/options.ts";
import type { OpenedConnection } from "./open-connection.ts";
import type { DynamoOptions } from "./options.ts";
import type { StackOptions } from "./stack-options.ts";
import { howToDeploy, infrastructureCommand } from "./url.ts";

/** Which stack, and how AWS is reached. */
export interface StackPlace {
  readonly stack: string;
  readonly region?: string;
  readonly endpointUrl?: string;
}

/** The part of `@zae-limiter/infra` that is used. */
export interface StackTools {
  /** Deploys a missing stack, or waits for a deployment under way; changes no existing stack. */
  readonly ensureStack: (place: StackPlace, stackOptions: StackOptions) => Promise<unknown>;
  /** Gives the functions of a stack the code of this version. */
  readonly updateLambda: (place: StackPlace) => Promise<unknown>;
  /** Deletes a stack, and its table too; the outcome is "absent" if there is none. */
  readonly deleteStack: (
    place: StackPlace & { readonly withData: true },
  ) => Promise<{ readonly outcome: string }>;
}

/** Bundlers must not look for a package that need not be installed, so they do not see its name. */
const INFRASTRUCTURE_PACKAGE: string = "@zae-limiter/infra";

/** Loads the package that manages stacks, on first use. */
async function loadStackTools(): Promise<StackTools> {
  return (await import(
    /* @vite-ignore */ /* webpackIgnore: true */ INFRASTRUCTURE_PACKAGE
  )) as StackTools;
}

/**
 * The stack of a repository. It is managed with the credentials that the AWS SDK finds, and those
 * of a client or transport that the caller passed in may belong to another account: such a
 * repository leaves stacks alone.
 */
export class StackAccess {
  readonly #opened: Omit<OpenedConnection, "connection">;
  readonly #passedIn: "client" | "transport" | undefined;
  readonly #load: () => Promise<StackTools>;

  constructor(
    options: Pick<DynamoOptions, "client" | "transport">,
    opened: Omit<OpenedConnection, "connection">,
    load = loadStackTools,
  ) {
    this.#opened = opened;
    this.#passedIn = PASSED_IN.find((name) => options[name] !== undefined);
    this.#load = load;
  }

  /** Whether a stack that is missing may be deployed. */
  get mayDeploy(): boolean {
    return this.#opened.resolved.provisioning === "stack" && this.#passedIn === undefined;
  }

  /** Deploys the stack unless it exists, and waits until it is ready. */
  async ensure(stackOptions: StackOptions): Promise<void> {
    const { resolved, region } = this.#opened;
    const { ensureStack } = await this.#tools(() => howToDeploy({ ...resolved, region }));
    await ensureStack(this.#place(), stackOptions);
  }

  /** Gives the functions of the stack the code of this version. */
  async updateLambda(): Promise<void> {
    this.#refusePassedIn();
    const { updateLambda } = await this.#tools(() => this.#instead("Updating a Lambda", "deploy"));
    await updateLambda(this.#place());
  }

  /** Deletes the stack with its table, which takes a while longer; returns whether it existed. */
  async delete(): Promise<boolean> {
    this.#refusePassedIn();
    const { deleteStack } = await this.#tools(() =>
      this.#instead("Deleting a stack", "delete", "--with-data"),
    );
    return (await deleteStack({ ...this.#place(), withData: true })).outcome !== "absent";
  }

  async #tools(instruction: () => string): Promise<StackTools> {
    try {
      return await this.#load();
    } catch (error) {
      if (!isMissing(error)) throw error;
      throw new InfrastructureError("ERR_LIMITER_INFRA_MISSING", instruction(), { cause: error });
    }
  }

  #instead(what: string, verb: string, ...options: readonly string[]): string {
    const { resolved, region } = this.#opened;
    const command = [infrastructureCommand(verb, { ...resolved, region }), ...options].join(" ");
    return `${what} needs ${INFRASTRUCTURE_PACKAGE}: install it with npm install ${INFRASTRUCTURE_PACKAGE}, or run ${command}.`;
  }

  #place(): StackPlace {
    const { resolved, region } = this.#opened;
    const { stackName: stack, endpointUrl } = resolved;
    return { stack, ...(region && { region }), ...(endpointUrl !== undefined && { endpointUrl }) };
  }

  #refusePassedIn(): void {
    if (this.#passedIn === undefined) return;
    throw new ValidationError(
      this.#passedIn,
      undefined,
      `its credentials may be of another account than those that stacks are managed with; open the repository without a ${this.#passedIn}, or use the command line`,
    );
  }
}

/** A package that is installed and broken is another matter: installing it would not help. */
function isMissing(error: unknown): boolean {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  const isNotFound = code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
  return isNotFound && String(message).includes(`'${INFRASTRUCTURE_PACKAGE}'`);
}

const PASSED_IN = ["client", "transport"] as const;

/** Throws for an unknown option of a stack. The values are checked when the stack is created. */
export function checkStackOptions(options: StackOptions): void {
  checkOptions(options, STACK_OPTION_NAMES, "a stack");
}

const STACK_OPTION_NAMES = optionNames<StackOptions>({
  snapshotWindows: true,
  usageRetentionDays: true,
  auditRetentionDays: true,
  bucketTtlMultiplier: true,
  billingMode: true,
  readCapacity: true,
  maxReadCapacity: true,
  writeCapacity: true,
  maxWriteCapacity: true,
  indexReadCapacity: true,
  indexWriteCapacity: true,
  capacityUtilizationPct: true,
  pitrRecoveryDays: true,
  enableDeletionProtection: true,
  enableAggregator: true,
  enableProvisioner: true,
  lambdaTimeoutSeconds: true,
  lambdaMemoryMb: true,
  aggregatorReservedConcurrency: true,
  logRetentionDays: true,
  enableTracing: true,
  enableAuditArchival: true,
  auditArchiveGlacierDays: true,
  enableAlarms: true,
  alarmSnsTopic: true,
  lambdaDurationThresholdPct: true,
  createIam: true,
  createIamRoles: true,
  aggregatorRoleArn: true,
  permissionBoundary: true,
  roleNameFormat: true,
  policyNameFormat: true,
  tags: true,
});
