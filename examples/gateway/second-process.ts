import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Books, Counts, Message } from "./call-log.ts";
import { nowMs } from "./time-and-random.ts";

/** How long the second process may take to end its last calls; then it counts as lost. */
const LAST_CALLS_MS = 30_000;

/** The second process as the first one sees it. */
export interface SecondProcess {
  readonly counts: () => Counts;
  /** Its books; rejects when it ended without them. */
  readonly books: Promise<Books>;
}

/** Starts the second process. It ends by itself, also when this process ends first. */
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
  const tooLate = setTimeout(() => child.kill("SIGKILL"), endMs - nowMs() + LAST_CALLS_MS).unref();
  let counts: Counts = {};
  const books = new Promise<Books>((resolve, reject) => {
    child.on("message", (message: Message) => {
      counts = "books" in message ? message.books.counts : message.counts;
      if ("books" in message) resolve(message.books);
    });
    child.on("error", reject);
    child.on("exit", (code, signal) => {
      clearTimeout(tooLate);
      reject(new Error(`The second process ended early (${signal ?? `exit ${code}`}).`));
    });
  });
  // Handled where it is awaited; until then a rejection must not end the process.
  books.catch(() => undefined);
  return { counts: () => counts, books };
}
