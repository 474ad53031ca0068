import { isUnknown, known } from "./seen.ts";
import type { FunctionState, StackState, StackStatus } from "./status-model.ts";

type Parts = Omit<StackStatus, "stack" | "region" | "endpointUrl" | "problems" | "warnings">;

/** What needs attention now: whatever makes `zae-limiter status` exit 1. */
export function problemsOf(parts: Parts): readonly string[] {
  const { connectivity, infrastructure, aggregator, versions } = parts;
  const stack = known(infrastructure);
  return [
    connectivity.reachable
      ? undefined
      : `The table cannot be used: ${connectivity.reason ?? "it does not answer"}`,
    stack !== undefined && /FAILED|^ROLLBACK/.test(stack.status) ? inStatus(stack) : undefined,
    known(versions)?.compatible === false ? known(versions)!.meaning : undefined,
    aggregator.state === "broken" ? `The aggregator is broken: ${aggregator.reason}` : undefined,
  ].filter((text) => text !== undefined);
}

/** What should be looked at, and lets everything go on. */
export function warningsOf(parts: Parts): readonly string[] {
  const { infrastructure, table, aggregator, provisioner, alarms } = parts;
  const { deadLetters } = aggregator;
  const stack = known(infrastructure);
  const waiting = known(deadLetters)?.messages ?? 0;
  const ringing = isUnknown(alarms) ? [] : (alarms ?? []).filter(({ state }) => state === "ALARM");
  const tableStatus = known(table)?.status;
  return [
    ...(stack?.drift ?? []).map((drift) => `Versions differ: ${drift}`),
    // It works as before, and stays in this status until something else is changed.
    stack !== undefined && /^(UPDATE|IMPORT)_ROLLBACK_(?!FAILED)/.test(stack.status)
      ? inStatus(stack)
      : undefined,
    stack?.isOurs === false ? "The stack of this name was not made by zae-limiter" : undefined,
    tableStatus !== undefined && tableStatus !== "ACTIVE"
      ? `The table is ${tableStatus}`
      : undefined,
    aggregator.state === "disabled" ? `Usage is not summed up: ${aggregator.reason}` : undefined,
    withoutUse(known(provisioner)),
    waiting > 0
      ? `${waiting} ${waiting === 1 ? "message waits" : "messages wait"} in ` +
        known(deadLetters)!.queue
      : undefined,
    ...ringing.map(
      ({ name, reason }) => `Alarm ${name}${reason === undefined ? "" : `: ${reason}`}`,
    ),
  ].filter((text) => text !== undefined);
}

/** Limits hold and usage is counted without it, so this is no problem of the stack. */
function withoutUse(lambda: FunctionState | undefined): string | undefined {
  if (lambda === undefined || ![lambda.state, lambda.lastUpdate].includes("Failed"))
    return undefined;
  const reason = lambda.stateReason ?? lambda.lastUpdateReason ?? "Lambda gives no reason";
  return `Templates cannot declare limits: ${lambda.name} has failed: ${reason}`;
}

function inStatus({ status, reason }: StackState): string {
  return `The stack is in ${status}${reason === undefined ? "" : `: ${reason}`}`;
}
