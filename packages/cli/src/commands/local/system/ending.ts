import { setTimeout as sleep } from "node:timers/promises";
import { LocalError } from "../../../exit.ts";
import { Claim } from "./claim.ts";
import { askSupervisor } from "./control.ts";
import { endProcess, processIdentity } from "./process-identity.ts";
import type { FoundSystem, LocalFolder, LocalState } from "./state.ts";

/** What came of ending a local system. */
export interface Ending {
  readonly wasRunning: boolean;
  readonly data?: string;
}

/** How long a supervisor may take: for the batches of its aggregator, and to end its engine. */
const END_WITHIN_MS = 30_000;
const POLL_MS = 25;

/**
 * Ends a local system and waits until it has ended. A supervisor is told by its own token. One that
 * does not answer, and the engine of one that has died, are ended by their process, after a look at
 * whether it is the very process that the folder names.
 */
export async function endSystem(folder: LocalFolder): Promise<Ending> {
  const found = await folder.find();
  if (found.is === "absent" || found.is === "ended") return { wasRunning: false };
  const { state } = found;
  const isTold = found.is === "alive" && (await askSupervisor(state.control, "POST")) !== undefined;
  const left = isTold ? await afterEnd(folder) : found;
  if (left.is === "alive" || left.is === "dead") await clearUp(folder, left.state);
  return { wasRunning: true, ...(state.data !== undefined && { data: state.data }) };
}

/** Waits until a supervisor that was told to end has done so, or for long enough. */
async function afterEnd(folder: LocalFolder): Promise<FoundSystem> {
  for (let waitedMs = 0; ; waitedMs += POLL_MS) {
    const found = await folder.find();
    if (found.is !== "alive" || waitedMs >= END_WITHIN_MS) return found;
    await sleep(POLL_MS);
  }
}

/** Does what a supervisor that died, or does not answer, cannot do itself. */
async function clearUp(folder: LocalFolder, state: LocalState): Promise<void> {
  for (const left of [state.holder, state.engineProcess])
    if (left !== undefined && !(await endProcess(left)))
      throw new LocalError(`Process ${left.pid} does not end. End it yourself.`);
  const holder = processIdentity(process.pid)!;
  await Claim.take<LocalState>(folder.path, { ...state, holder, phase: "ended", released: true });
}
