import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** One process, told apart from another that has got its number later. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it began, in the words of the system; `UNKNOWN_BEGINNING` where that cannot be told. */
  readonly began: string;
}

/** Such a process is never ended by its number: it may be somebody else's. */
const UNKNOWN_BEGINNING = "unknown";

/** Who has this number now; `undefined` when nobody has. */
export function processIdentity(pid: number): ProcessIdentity | undefined {
  const began = beginningOf(pid);
  return began === undefined ? undefined : { pid, began };
}

/** Whether the very process is still there. */
export function isAlive({ pid, began }: ProcessIdentity): boolean {
  return beginningOf(pid) === began;
}

/** How long a process gets to end by itself before it is killed. */
const END_WITHIN_MS = 5000;
const POLL_MS = 20;

/** Ends the very process, if it is still there. False if it is there and must be left alone. */
export async function endProcess(
  identity: ProcessIdentity,
  withinMs = END_WITHIN_MS,
): Promise<boolean> {
  if (!isAlive(identity)) return true;
  if (identity.began === UNKNOWN_BEGINNING) return false;
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    process.kill(identity.pid, signal);
    if (await hasEnded(identity, withinMs)) return true;
  }
  return false;
}

/** Waits until the very process has ended; false if it takes longer. */
async function hasEnded(identity: ProcessIdentity, withinMs: number): Promise<boolean> {
  for (let waitedMs = 0; isAlive(identity); waitedMs += POLL_MS) {
    if (waitedMs >= withinMs) return false;
    await sleep(POLL_MS);
  }
  return true;
}

function beginningOf(pid: number): string | undefined {
  if (process.platform === "linux") return linuxBeginning(pid);
  if (process.platform === "darwin") return darwinBeginning(pid);
  try {
    process.kill(pid, 0);
    return UNKNOWN_BEGINNING;
  } catch {
    return undefined;
  }
}

/** The boot, and the clock tick since then: field 22 of proc(5). A zombie has ended. */
function linuxBeginning(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name before it is in brackets, and may contain spaces and brackets.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") return undefined;
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return `${boot} ${fields[19]}`;
  } catch {
    return undefined;
  }
}

function darwinBeginning(pid: number): string | undefined {
  try {
    const text = execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" });
    return text.trim() || undefined;
  } catch {
    return undefined;
  }
}
