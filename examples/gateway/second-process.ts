import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { CallLog, Counts, Message } from "./call-log.ts";
import { nowMs } from "./time-and-random.ts";

/** How long the second process may take for its last calls before it is killed. */
const MAX_LAST_CALLS_MS = 30_000;

/** The second process as the first one sees it. */
export interface SecondProcess {
  readonly counts: () => Counts;
  /** Its call log; rejects when the process ends without sending it. */
  readonly log: Promise<CallLog>;
}

/** Starts the second process. It ends by itself, even when this process ends first. */
export function startSecondProcess(
  url: string,
  endMs: number,
  fault: string | undefined,
): SecondProcess {
  const child = fork(fileURLToPath(new URL("./second-process-main.js", import.meta.url)), [
    url,
    String(endMs),
    fault ?? "",
  ]);
  const tooLate = setTimeout(
    () => child.kill("SIGKILL"),
    endMs - nowMs() + MAX_LAST_CALLS_MS,
  ).unref();
  let counts: Counts = {};
  const log = new Promise<CallLog>((resolve, reject) => {
    child.on("message", (message: Message) => {
      counts = "log" in message ? message.log.counts : message.counts;
      if ("log" in message) resolve(message.log);
    });
    child.on("error", reject);
    child.on("exit", (code, signal) => {
      clearTimeout(tooLate);
      reject(new Error(`The second process ended early (${signal ?? `exit ${code}`}).`));
    });
  });
  // The caller handles a rejection when it awaits the log; until then it must not end the process.
  log.catch(() => undefined);
  return { counts: () => counts, log };
}
