import { keyOfStatement, type RequestKey, type RequestStatement } from "./written-items.ts";

/**
 * What happens to one statement of a batch instead of normal handling. The names are those of
 * `Fault`, and two more:
 * - `throttle`, `throughput`, `conflict`, `denied`, `internal`: it is not carried out;
 * - `late-internal`: it is carried out, and an internal error is its reply;
 * - `condition`: it is not carried out, its condition failed, and the reply lacks the item;
 * - `invalid`: it is not carried out, because the engine does not understand it.
 */
export type StatementFault = keyof typeof CODES;

/** The reply to one statement. */
export interface StatementReply {
  readonly Error?: {
    readonly Code?: string;
    readonly Message?: string;
    readonly Item?: object;
  };
  readonly Item?: object;
}

/** The codes that DynamoDB documents for the errors of single statements. */
const CODES = {
  throttle: "ThrottlingError",
  throughput: "ProvisionedThroughputExceeded",
  conflict: "TransactionConflict",
  denied: "AccessDenied",
  internal: "InternalServerError",
  "late-internal": "InternalServerError",
  condition: "ConditionalCheckFailed",
  invalid: "ValidationError",
} as const;

/** All of them. */
export const STATEMENT_FAULTS = Object.keys(CODES) as readonly StatementFault[];

/** Whether a fault can be that of one statement. */
export function isStatementFault(fault: unknown): fault is StatementFault {
  return typeof fault === "string" && fault in CODES;
}

/** The statements of a batch that are carried out although some of them fail. */
export function carriedOut(
  statements: readonly RequestStatement[],
  faultOf: (key: RequestKey) => StatementFault | undefined,
): {
  readonly statements: readonly RequestStatement[];
  /** The replies to all of them, given those to the ones that were carried out. */
  readonly replies: (replies: readonly StatementReply[]) => readonly StatementReply[];
} {
  const faults = statements.map((statement) => faultOf(keyOfStatement(statement)));
  const isDone = faults.map((fault) => fault === undefined || fault === "late-internal");
  return {
    statements: statements.filter((_, index) => isDone[index]),
    replies: (replies) => {
      const rest = [...replies];
      return faults.map((fault, index) => {
        const reply = isDone[index] ? rest.shift() : undefined;
        return fault === undefined
          ? reply!
          : { Error: { Code: CODES[fault], Message: `made by the test: ${fault}` } };
      });
    },
  };
}
