import { spawn, type ChildProcess } from "node:child_process";
import { closeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { LocalError } from "../../exit.ts";
import type { Environment } from "../../environment.ts";
import type { LocalFolder, LocalState } from "./system/local-folder.ts";
import type { LocalOptions } from "./system/local-system.ts";

/** The hidden option with which `local up` writes to its log only. */
export const BACKGROUND_OPTION = "--in-background";

const POLL_MS = 25;

/** The result of a start in the background: the running system, and whether this start began it. */
export interface BackgroundStart {
  readonly state: LocalState;
  readonly isNew: boolean;
}

/**
 * Starts `local up` in the background, and returns when its system is ready. If another start was
 * faster, it returns when that one is. Rejects with the reason if it cannot be started, and leaves
 * nothing behind.
 */
export async function startInBackground(
  options: LocalOptions,
  { folder, environment }: { readonly folder: LocalFolder; readonly environment: Environment },
): Promise<BackgroundStart> {
  folder.create();
  const log = folder.openLog();
  const args = [...process.execArgv, process.argv[1]!, ...toArguments(options)];
  // The output of a crash goes to the log too.
  const stdio = ["ignore", "ignore", log] as const;
  const child = spawn(process.execPath, args, {
    detached: true,
    stdio: [...stdio],
    windowsHide: true,
  });
  closeSync(log);
  const exit = waitForExit(child);
  let isInterrupted = false;
  const stopListening = environment.onInterrupt(() => {
    isInterrupted = true;
    child.kill("SIGTERM");
  });
  try {
    // The process ends by itself if it is not ready in time, so this loop ends too.
    for (;;) {
      const exited = await Promise.race([exit, sleep(POLL_MS)]);
      const found = folder.find();
      const isOwn = found.is !== "absent" && found.state.owner.pid === child.pid;
      if (isInterrupted && exited !== undefined) {
        // On Windows a signal ends only the process itself, not its engine.
        if (isOwn) await folder.end();
        throw new LocalError("Interrupted. Nothing was left.");
      }
      if (found.is === "alive" && found.state.phase === "running" && (isOwn || exited === 0))
        return { state: found.state, isNew: isOwn };
      // It exits with 0 only if another start was faster, which may not be ready yet.
      if (exited === undefined || (exited === 0 && found.is === "alive")) continue;
      if (isOwn && found.is === "ended" && found.state.reason !== undefined)
        throw new LocalError(found.state.reason);
      throw new LocalError(
        `It could not be started (${exited}). To see why: zae-limiter local logs`,
      );
    }
  } finally {
    stopListening();
    child.unref();
  }
}

function toArguments({ stack, region, port, data, engine, jar }: LocalOptions): readonly string[] {
  const given = { stack, region, port, data, engine, jar };
  const options = Object.entries(given).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, String(value)],
  );
  return ["local", "up", BACKGROUND_OPTION, ...options];
}

async function waitForExit(child: ChildProcess): Promise<number | string> {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signal) => resolve(code ?? signal ?? "unknown"));
  });
}
