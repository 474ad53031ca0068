import { getKnown } from "./parts.ts";
import type { StackState, StackStatus } from "./status-model.ts";

type Parts = Omit<StackStatus, "stack" | "region" | "endpointUrl" | "problems" | "warnings">;

/** What needs attention now: any of these makes `zae-limiter status` exit 1. */
export function findProblems(parts: Parts): readonly string[] {
  const { connectivity, infrastructure, aggregator, versions } = parts;
  const stack = getKnown(infrastructure);
  return [
    connectivity.reachable
      ? undefined
      : `The table cannot be used: ${connectivity.reason ?? "it does not answer"}`,
    stack !== undefined && /FAILED|^ROLLBACK/.test(stack.status)
      ? describeStatus(stack)
      : undefined,
    getKnown(versions)?.compatible === false ? getKnown(versions)!.meaning : undefined,
    aggregator.state === "broken" ? `The aggregator is broken: ${aggregator.reason}` : undefined,
  ].filter((text) => text !== undefined);
}

/** What should be looked at, although everything still works. */
export function findWarnings({ infrastructure, table }: Parts): readonly string[] {
  const stack = getKnown(infrastructure);
  const tableStatus = getKnown(table)?.status;
  return [
    ...(stack?.drift ?? []).map((drift) => `Versions differ: ${drift}`),
    // It works as before, and stays in this status until something else is changed.
    stack !== undefined && /^(UPDATE|IMPORT)_ROLLBACK_(?!FAILED)/.test(stack.status)
      ? describeStatus(stack)
      : undefined,
    stack?.isOurs === false ? "The stack of this name was not made by zae-limiter" : undefined,
    tableStatus !== undefined && tableStatus !== "ACTIVE"
      ? `The table is ${tableStatus}`
      : undefined,
  ].filter((text) => text !== undefined);
}

function describeStatus({ status, reason }: StackState): string {
  return `The stack is in ${status}${reason === undefined ? "" : `: ${reason}`}`;
}
