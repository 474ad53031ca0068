import type { AttributeMap } from "../transport/attribute-values.ts";
import { saidBy } from "../transport/failure.ts";
import { translated, TableUnavailable } from "./table-errors.ts";

/** The reply to one statement of a `BatchExecuteStatement`. */
export interface StatementReply {
  readonly Item?: AttributeMap;
  readonly Error?: {
    readonly Code?: string;
    readonly Message?: string;
    /** The item as it was, where the engine returns it. */
    readonly Item?: AttributeMap;
  } | null;
}

/** A statement that was applied, or whose condition failed; the item as the reply shows it. */
export interface KnownOutcome {
  readonly kind: "applied" | "condition failed";
  readonly item: AttributeMap | undefined;
}

/**
 * What became of one statement. One that was throttled, invalid or denied was not applied, and is
 * to be sent alone, where the reply says more.
 */
export type StatementOutcome =
  | KnownOutcome
  | { readonly kind: "throttled" | "invalid" | "denied"; readonly why: string }
  | { readonly kind: "failed"; readonly error: TableUnavailable };

/**
 * Reads the reply to one statement. One without a reply, or with `null` in its place, may have been
 * applied, or not.
 */
export function statementOutcome(
  reply: StatementReply | null | undefined,
  tableName: string,
): StatementOutcome {
  if (reply && !reply.Error) return { kind: "applied", item: reply.Item };
  const { Code: code, Message: said = "", Item: item } = reply?.Error ?? {};
  const { name, message } = saidBy(code ?? "no code", said);
  const why = `${name}: ${message}`;
  switch (code) {
    case "ConditionalCheckFailed":
      return { kind: "condition failed", item };
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
      return { kind: "failed", error: unknownOutcome(code, why, tableName) };
  }
}

/** A conflict with a transaction was not applied; any other error may have been. */
function unknownOutcome(
  code: string | undefined,
  why: string,
  tableName: string,
): TableUnavailable {
  const name =
    code === "TransactionConflict" ? "TransactionConflictException" : "InternalServerError";
  const said = code === undefined ? "The reply lacks a statement" : why;
  const error = Object.assign(new Error(said), { name });
  return translated(error, { tableName, operation: "BatchExecuteStatement" }) as TableUnavailable;
}
