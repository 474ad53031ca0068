import {
  InfrastructureError,
  InfrastructureNotFoundError,
  RateLimiterUnavailable,
  withoutStack,
} from "../../../core/errors.ts";
import type { AttributeMap } from "../transport/attribute-values.ts";
import {
  buildDeniedCallError,
  buildMissingCredentialsError,
  buildRefusedCredentialsError,
} from "../transport/denied.ts";
import {
  classifyError,
  NO_FACTS,
  readError,
  type CancellationReason,
  type UnavailableFacts,
} from "../transport/failure.ts";

/** The table could not answer. Adds what only the write path needs to the public type. */
export class TableUnavailable extends RateLimiterUnavailable implements UnavailableFacts {
  readonly ambiguous: boolean;
  readonly throttled: boolean;
  readonly tableWide: boolean;
  readonly keysThrottled: boolean;
  readonly timedOut: boolean;

  constructor(
    message: string,
    options: ErrorOptions & Partial<UnavailableFacts> & { readonly stackName?: string },
  ) {
    super(message, options);
    const facts = { ...NO_FACTS, ...options };
    this.name = "RateLimiterUnavailable";
    this.ambiguous = facts.ambiguous;
    this.throttled = facts.throttled;
    this.tableWide = facts.tableWide;
    this.keysThrottled = facts.keysThrottled;
    this.timedOut = facts.timedOut;
  }

  /** The same error, of which something else is known. */
  withFacts(facts: Partial<UnavailableFacts>): TableUnavailable {
    const { message, ambiguous, throttled, tableWide, keysThrottled, timedOut } = this;
    const own = { ambiguous, throttled, tableWide, keysThrottled, timedOut };
    return new TableUnavailable(message, { ...own, ...facts, cause: this });
  }
}

/** A condition did not hold: an expected outcome, which `conditional` turns into a value. */
export class ConditionFailed extends InfrastructureError {
  /** The item as it was, when the request asked for it. */
  readonly item: AttributeMap | undefined;

  constructor(item: AttributeMap | undefined, options?: ErrorOptions) {
    super("ERR_LIMITER_CONDITION_FAILED", "The item is not as the write required.", options);
    this.item = item;
  }
}

/** A transaction was cancelled: an expected outcome, which `transact` turns into a value. */
export class TransactionCancelled extends InfrastructureError {
  readonly reasons: readonly CancellationReason[];

  constructor(reasons: readonly CancellationReason[], options?: ErrorOptions) {
    super(
      "ERR_LIMITER_TRANSACTION_CANCELLED",
      `A transaction was cancelled: ${reasons.map(({ code }) => code).join(", ")}`,
      options,
    );
    this.reasons = reasons;
  }
}

/** Other processes were faster at every attempt: contention is unavailability. */
export function contention(
  what: string,
  tableName: string,
  options: ErrorOptions = {},
): TableUnavailable {
  return new TableUnavailable(
    `Too much contention: ${what} on table ${tableName} lost every race. Try again.`,
    {
      ...options,
      stackName: tableName,
    },
  );
}

/** The error of a table that this process has used, and that does not exist any more. */
export function buildMissingTableError(
  tableName: string,
  options: ErrorOptions,
): InfrastructureNotFoundError {
  return new InfrastructureNotFoundError(
    `Table ${tableName} is gone, with what was stored in it: it was deleted, or the first ` +
      "deployment of its stack failed and was rolled back. Deploy or create it again; this process " +
      "then continues without a restart.",
    options,
  );
}

/** The error that callers get for an error of the transport. */
export function translateError(
  error: unknown,
  context: { readonly tableName: string; readonly operation: string },
): Error {
  if (error instanceof InfrastructureError) return error;
  const { tableName, operation } = context;
  const { name, message } = readError(error);
  const said = `${operation} on table ${tableName}: ${name}: ${message}`;
  const failure = classifyError(error);
  switch (failure.kind) {
    case "condition":
      return withoutStack(() => new ConditionFailed(failure.item, { cause: error }));
    case "cancelled":
      return withoutStack(() => new TransactionCancelled(failure.reasons, { cause: error }));
    case "unavailable":
      return new TableUnavailable(`DynamoDB could not answer ${said}`, {
        ...failure,
        stackName: tableName,
        cause: error,
      });
    case "denied":
      return buildDeniedCallError(`dynamodb:${operation}`, {
        resource: `table ${tableName}`,
        why: `${name}: ${message}`,
        cause: error,
      });
    case "credentials":
      return failure.found
        ? buildRefusedCredentialsError(`${name}: ${message}`, { cause: error })
        : buildMissingCredentialsError(message, { cause: error });
    case "missing":
      return new InfrastructureNotFoundError(
        `Table ${tableName} does not exist, or is not ready. ` +
          "Create it first, or check its name and the region.",
        {
          cause: error,
        },
      );
    default:
      return new InfrastructureError("ERR_LIMITER_STORE_REJECTED", `DynamoDB rejected ${said}`, {
        cause: error,
      });
  }
}
