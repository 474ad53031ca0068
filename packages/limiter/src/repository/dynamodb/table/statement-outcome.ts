import { getString, type AttributeMap } from "../transport/attribute-values.ts";
import { shortenError } from "../transport/failure.ts";
import { translateError, TableUnavailable } from "./table-errors.ts";
import type { Statement } from "./update-expression.ts";

/** The reply to one statement of a `BatchExecuteStatement`; `null` stands for what is absent. */
export interface StatementReply {
  readonly Item?: AttributeMap | null;
  readonly Error?: {
    readonly Code?: string | null;
    readonly Message?: string | null;
    /** The item as it was, where the engine returns it. */
    readonly Item?: AttributeMap | null;
  } | null;
}

/** A statement that was applied, or whose condition failed; the item as the reply shows it. */
export type KnownOutcome =
  | { readonly kind: "applied"; readonly item: AttributeMap }
  | { readonly kind: "condition failed"; readonly item: AttributeMap | undefined };

/**
 * What became of one statement. One that was throttled, invalid or denied was not applied, and is
 * to be sent alone, where the reply says more.
 */
export type StatementOutcome =
  | KnownOutcome
  | { readonly kind: "throttled" | "invalid" | "denied"; readonly why: string }
  | { readonly kind: "failed"; readonly error: TableUnavailable };

/**
 * Reads the reply to one statement. Each of ours returns its item. One without a reply, or whose
 * reply shows neither an item nor an error, may have been applied, or not.
 */
export function statementOutcome(
  reply: StatementReply | null | undefined,
  tableName: string,
): StatementOutcome {
  if (reply?.Item && !reply.Error) return { kind: "applied", item: reply.Item };
  const { Code: code, Message: said, Item: item } = reply?.Error ?? {};
  const { name, message } = shortenError(code ?? "no code", said ?? "");
  const why = `${name}: ${message}`;
  switch (code) {
    case "ConditionalCheckFailed":
      return { kind: "condition failed", item: item ?? undefined };
    case "ThrottlingError":
    case "ProvisionedThroughputExceeded":
    case "RequestLimitExceeded":
      return { kind: "throttled", why };
    case "ValidationError":
    case "ResourceNotFound":
    case "ItemCollectionSizeLimitExceeded":
      return { kind: "invalid", why };
    case "AccessDenied":
      return { kind: "denied", why };
    default:
      return { kind: "failed", error: buildUnknownOutcomeError(code, why, tableName) };
  }
}

/**
 * Whether the item of an outcome is the one that a statement is about. It has its key or, where
 * only what was written is shown, no text but what the statement wrote: its operation id, which no
 * other write has.
 */
export function isAbout({ Parameters }: Statement, outcome: StatementOutcome): boolean {
  if (!("item" in outcome) || outcome.item === undefined) return true;
  const { PK } = outcome.item;
  const shown = PK === undefined ? Object.values(outcome.item) : [PK];
  return shown.every((value) => {
    const text = getString(value);
    return text === undefined || Parameters.some((parameter) => getString(parameter) === text);
  });
}

/** A conflict with a transaction was not applied; any other error may have been. */
function buildUnknownOutcomeError(
  code: string | null | undefined,
  why: string,
  tableName: string,
): TableUnavailable {
  const name =
    code === "TransactionConflict" ? "TransactionConflictException" : "InternalServerError";
  const said = code ? why : "The reply does not show what became of a statement";
  const error = Object.assign(new Error(said), { name });
  return translateError(error, {
    tableName,
    operation: "BatchExecuteStatement",
  }) as TableUnavailable;
}
