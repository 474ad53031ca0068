import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Artillery } from "./find-artillery.ts";
import type { ReporterMessage } from "./artillery-reporter.ts";
import type { Metrics } from "./metrics.ts";

/** What is kept of Artillery's own output, to show when it fails. */
const MOST_OUTPUT = 4000;

/** How long an interrupted Artillery may take to end its users and its workers. */
const MOST_ENDING_MS = 15_000;

/** How to run a script. */
export interface StartOptions {
  /** The file of the script. */
  readonly script: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Ends the run; what was measured until then is returned. */
  readonly signal?: AbortSignal;
  readonly onPeriod?: (metrics: Metrics) => void;
}

/** How a run of Artillery ended. */
export interface ArtilleryOutcome {
  readonly exitCode: number | null;
  readonly periods: readonly Metrics[];
  /** The whole run; undefined when it did not end by itself. */
  readonly whole: Metrics | undefined;
  /** The end of what it printed. */
  readonly output: string;
}

/** Runs a script in a process of its own, and returns when it has ended. */
export async function startArtillery(
  { program }: Artillery,
  { script, env, signal, onPeriod }: StartOptions,
): Promise<ArtilleryOutcome> {
  const child = spawn(process.execPath, [program, "run", script], {
    env: { ...env, NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    // A Ctrl-C in the terminal must reach it once, from here: at the second it ends at once.
    detached: process.platform !== "win32",
  });
  const periods: Metrics[] = [];
  let whole: Metrics | undefined;
  let output = "";
  for (const stream of [child.stdout!, child.stderr!])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-MOST_OUTPUT);
    });
  child.on("message", ({ event, metrics }: ReporterMessage) => {
    if (event === "done") whole = metrics;
    else {
      periods.push(metrics);
      onPeriod?.(metrics);
    }
  });
  let patience: NodeJS.Timeout | undefined;
  const end = (): void => {
    child.kill("SIGINT");
    patience = setTimeout(() => child.kill("SIGKILL"), MOST_ENDING_MS);
  };
  const kill = (): void => void child.kill("SIGKILL");
  // This process may be ended by a second Ctrl-C.
  process.once("exit", kill);
  signal?.addEventListener("abort", end, { once: true });
  if (signal?.aborted === true) end();
  try {
    const [exitCode] = (await once(child, "close")) as [number | null];
    return { exitCode, periods, whole, output };
  } finally {
    clearTimeout(patience);
    process.off("exit", kill);
    signal?.removeEventListener("abort", end);
  }
}
