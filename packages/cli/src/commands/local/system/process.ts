// Processes by pid and start time: the system gives the pid of a process that has ended to another.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { LocalError } from "../../../exit.ts";

/** One process. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in the format of the operating system. */
  readonly start: string;
}

/** The process that has this pid now; undefined if there is none. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const start = readStart(pid);
  return start === undefined ? undefined : { pid, start };
}

/** This process. */
export function identifyThisProcess(): ProcessIdentity {
  const identity = identifyProcess(process.pid);
  if (identity === undefined)
    throw new LocalError(
      "This system does not say when a process started: run the engine by hand.",
    );
  return identity;
}

/** Whether a process still runs. Another one with its pid does not count. */
export function isRunning({ pid, start }: ProcessIdentity): boolean {
  return readStart(pid) === start;
}

const POLL_MS = 20;

/** Ends a process, by force if it takes longer. False if it runs even then. */
export async function endProcess(target: ProcessIdentity, withinMs: number): Promise<boolean> {
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    if (!isRunning(target)) return true;
    try {
      process.kill(target.pid, signal);
    } catch {
      // It has just ended, or belongs to another user; the next look shows which.
    }
    for (let waitedMs = 0; waitedMs < withinMs && isRunning(target); waitedMs += POLL_MS)
      await sleep(POLL_MS);
  }
  return !isRunning(target);
}

function readStart(pid: number): string | undefined {
  try {
    // Throws if there is no such process, which is quicker than asking a program.
    process.kill(pid, 0);
    if (process.platform === "linux") return readLinuxStart(pid);
    if (process.platform === "win32") return askWindows(pid);
    return askPs(pid);
  } catch {
    return undefined;
  }
}

/** The boot, and the clock tick since then: field 22 of proc(5). A zombie has ended. */
function readLinuxStart(pid: number): string | undefined {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name before it is in brackets, and may contain spaces and brackets.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (fields[0] === "Z" || fields[0] === "X") return undefined;
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  return `${boot} ${fields[19]}`;
}

/** The output of `ps` on macOS and BSD, in one language and time zone. */
function askPs(pid: number): string | undefined {
  const env = { ...process.env, LC_ALL: "C", TZ: "UTC" };
  const args = ["-o", "stat=", "-o", "lstart=", "-p", String(pid)];
  const [state = "", ...start] = runProgram("ps", args, env).split(/\s+/);
  return state === "" || state.startsWith("Z") ? undefined : start.join(" ");
}

function askWindows(pid: number): string | undefined {
  const script = `(Get-Process -Id ${pid}).StartTime.ToFileTimeUtc()`;
  const args = ["-NoProfile", "-NonInteractive", "-Command", script];
  return runProgram("powershell.exe", args) || undefined;
}

function runProgram(file: string, args: readonly string[], env = process.env): string {
  const stdio = ["ignore", "pipe", "ignore"] as const;
  return execFileSync(file, args, { encoding: "utf8", env, stdio: [...stdio] }).trim();
}
