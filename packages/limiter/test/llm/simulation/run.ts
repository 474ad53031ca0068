import { RateLimitExceeded, type RateLimiter } from "zae-limiter";
import type { LlmCall, MeteredRecord } from "zae-limiter/llm";
import type { ManualClock } from "zae-limiter/testing";
import { Meter } from "../../../src/llm/meter.ts";
import type { MeteredCall } from "../../../src/llm/metered-call.ts";
import { NO_TOKENS } from "../../../src/llm/tokens/token-usage.ts";
import { CALL, PartReader, type Part } from "../metered-setting.ts";
import { METERINGS, PLAIN_ENDS, type Script } from "./scripts.ts";

/** What was seen of a call. */
export interface Seen {
  readonly script: Script;
  readonly isGranted: boolean;
  /** Whether its stream ended with a refusal. */
  sawRefusal: boolean;
  readonly records: MeteredRecord[];
}

const IDLE_MS = 300_000;

/** Most turns of the event loop until everything that was begun has ended. */
const MOST_TURNS = 2000;

/** Runs calls at the same time, until all of them are settled. */
export async function runScripts(
  limiter: RateLimiter,
  clock: ManualClock,
  scripts: readonly Script[],
): Promise<readonly Seen[]> {
  const seen = await Promise.all(scripts.map((script) => runScript(limiter, script)));
  await clock.advance(IDLE_MS);
  const isSettled = ({ isGranted, records }: Seen): boolean => !isGranted || records.length > 0;
  for (let turns = 0; turns < MOST_TURNS && !seen.every(isSettled); turns += 1) await turn();
  return seen;
}

async function runScript(limiter: RateLimiter, script: Script): Promise<Seen> {
  const records: MeteredRecord[] = [];
  const meter = new Meter<unknown>(
    {
      limiter,
      entity: async () => script.entityId,
      metering: inTokens(METERINGS[script.metering]),
      estimator: { estimate: () => script.estimate },
      abandoned: script.abandoned,
      overrun: script.overrun,
      idleMs: IDLE_MS,
      onSettled: (record) => records.push(record),
    },
    "limitFetch",
  );
  const abort = new AbortController();
  const described: LlmCall = { ...CALL, model: script.model };
  await waitTurns(script, 0);
  let call: MeteredCall;
  try {
    call = await meter.begin(described, undefined, abort.signal);
  } catch (error) {
    if (!(error instanceof RateLimitExceeded)) throw error;
    return { script, isGranted: false, sawRefusal: false, records };
  }
  const seen: Seen = { script, isGranted: true, sawRefusal: false, records };
  await waitTurns(script, 1);
  if ((PLAIN_ENDS as readonly string[]).includes(script.end)) await endPlain(call, seen, abort);
  else await endStream(call, seen, abort);
  if (script.endsTwice && script.end !== "idle")
    await Promise.all([
      call.settleFailed(),
      call.settleThrown(new Error("late")),
      call.settleThrown("late", abort.signal),
    ]);
  return seen;
}

async function endPlain(
  call: MeteredCall,
  { script }: Seen,
  abort: AbortController,
): Promise<void> {
  const nothing = new PartReader();
  switch (script.end) {
    case "answers with usage":
      nothing.read({ reported: script.report!, isReportFinal: true, bytes: 12_345 });
      return call.settleAnswered(nothing);
    case "answers without usage":
      for (const bytes of script.partBytes) nothing.read({ bytes });
      return call.settleAnswered(nothing);
    case "answers something that cannot be counted":
      nothing.outputBytes = undefined;
      return call.settleAnswered(nothing);
    case "answers with an error":
      return call.settleFailed();
    case "throws a status":
      return call.settleThrown(Object.assign(new Error("status"), { status: 500 }), abort.signal);
    case "throws a refused connection": {
      const cause = Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
      return call.settleThrown(new TypeError("fetch failed", { cause }), abort.signal);
    }
    case "throws a lost connection": {
      const cause = Object.assign(new Error("reset"), { code: "ECONNRESET" });
      return call.settleThrown(new TypeError("fetch failed", { cause }), abort.signal);
    }
    default:
      abort.abort();
      return call.settleThrown(abort.signal.reason, abort.signal);
  }
}

/** Reads a stream part by part, and then ends it. */
async function endStream(call: MeteredCall, seen: Seen, abort: AbortController): Promise<void> {
  const { script } = seen;
  const parts = listParts(script);
  const source = getSource(parts, script.end === "broken");
  const reader = call.watch(source, new PartReader(), abort.signal).getReader();
  try {
    for (let part = 0; part < parts.length; part += 1) {
      if (part < 2) await waitTurns(script, 2 + part);
      if ((await reader.read()).done) return;
    }
    if (script.end === "idle") return;
    if (script.end === "aborted") abort.abort();
    if (script.end === "cancelled" || script.end === "complete, then cancelled")
      return await reader.cancel();
    await reader.read();
  } catch (error) {
    seen.sawRefusal = error instanceof RateLimitExceeded;
  }
}

/** What the provider sends before the end. The usage comes last. */
function listParts({ end, firstReport, report, partBytes }: Script): readonly Part[] {
  const parts: Part[] = partBytes.map((bytes) => ({ bytes }));
  if (firstReport !== undefined) parts.unshift({ reported: { ...NO_TOKENS, ...firstReport } });
  if (report !== undefined) parts.push({ reported: report, isReportFinal: true });
  if (end === "complete" || end === "complete, then cancelled") parts.push({ isComplete: true });
  return parts;
}

/** Sends a part when one is asked for, so that what was read is what was sent. */
function getSource(parts: readonly Part[], breaks: boolean): ReadableStream<Part> {
  let sent = 0;
  return new ReadableStream<Part>(
    {
      pull: (controller) => {
        const part = parts[sent];
        sent += 1;
        if (part !== undefined) controller.enqueue(part);
        else if (breaks)
          controller.error(Object.assign(new Error("broke"), { code: "ECONNRESET" }));
        else controller.close();
      },
    },
    { highWaterMark: 0 },
  );
}

function inTokens(
  metering: Readonly<Record<string, Readonly<Record<string, number>>>>,
): Readonly<Record<string, Readonly<Record<string, number>>>> {
  return Object.fromEntries(
    Object.entries(metering).map(([name, weights]) => [
      name,
      Object.fromEntries(Object.entries(weights).map(([kind, parts]) => [kind, parts / 1e6])),
    ]),
  );
}

async function waitTurns({ turns }: Script, step: number): Promise<void> {
  for (let count = 0; count < turns[step]!; count += 1) await turn();
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
