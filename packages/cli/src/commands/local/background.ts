import { spawn, type ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { LocalError } from "../../exit.ts";
import type { Environment } from "../../environment.ts";
import type { LocalFolder, LocalState } from "./system/state.ts";
import type { LocalOptions } from "./system/supervisor.ts";

/** The hidden option of `local up` that makes a process the supervisor in the background. */
export const BACKGROUND_OPTION = "--in-background";

const POLL_MS = 25;

/** What a start in the background came to: the system that runs, and whether it is this start's. */
export interface BackgroundStart {
  readonly state: LocalState;
  readonly isNew: boolean;
}

/**
 * Starts a supervisor in the background, and returns when its system is ready. If another start was
 * faster, it returns when that one is. Rejects with the reason if it cannot be started, and leaves
 * nothing behind.
 */
export async function startInBackground(
  options: LocalOptions,
  { folder, environment }: { readonly folder: LocalFolder; readonly environment: Environment },
): Promise<BackgroundStart> {
  const child = spawn(
    process.execPath,
    [...process.execArgv, process.argv[1]!, ...words(options)],
    {
      detached: true,
      stdio: "ignore",
      windowsHide: true,
    },
  );
  const end = endOf(child);
  let isInterrupted = false;
  const stopListening = environment.onInterrupt(() => {
    isInterrupted = true;
    child.kill("SIGTERM");
  });
  try {
    // A supervisor ends by itself if it is not ready in time, so this ends too.
    for (;;) {
      const ended = await Promise.race([end, sleep(POLL_MS)]);
      if (isInterrupted && ended !== undefined)
        throw new LocalError("Interrupted. Nothing was left.");
      const found = await folder.find();
      const isOwn = found.is !== "absent" && found.state.holder.pid === child.pid;
      if (found.is === "alive" && found.state.phase === "running" && (isOwn || ended === 0))
        return { state: found.state, isNew: isOwn };
      // It exits 0 only if another start was faster; that one may still be starting.
      if (ended === undefined || (ended === 0 && found.is === "alive")) continue;
      if (isOwn && found.is === "ended" && found.state.reason !== undefined)
        throw new LocalError(found.state.reason);
      throw new LocalError(
        `It could not be started (${ended}). To see why: zae-limiter local logs`,
      );
    }
  } finally {
    stopListening();
    child.unref();
  }
}

/** The command line of the supervisor. Names are passed on as they were found. */
function words({ stack, region, port, data, engine, jar }: LocalOptions): readonly string[] {
  const given = { stack, region, port, data, engine, jar };
  const options = Object.entries(given).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, String(value)],
  );
  return ["local", "up", BACKGROUND_OPTION, ...options];
}

async function endOf(child: ChildProcess): Promise<number | string> {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signal) => resolve(code ?? signal ?? "unknown"));
  });
}
