import { LocalError } from "../../../exit.ts";
import { Claim } from "./claim.ts";
import { askSupervisor } from "./control.ts";
import { endProcess, hasEnded, processIdentity } from "./process-identity.ts";
import type { LocalFolder, LocalState } from "./state.ts";

/** What came of ending a local system. */
export interface Ending {
  readonly wasRunning: boolean;
  readonly data?: string;
}

/** How long a supervisor may take: for the batches of its aggregator, and to end its engine. */
const END_WITHIN_MS = 30_000;

/**
 * Ends a local system and waits until it has ended. A supervisor is told by its own token. One that
 * does not answer, and the engine of one that has died, are ended by their process, after a look at
 * whether it is the very process that the folder names.
 */
export async function endSystem(folder: LocalFolder): Promise<Ending> {
  const found = await folder.find();
  if (found.is === "absent" || found.is === "ended") return { wasRunning: false };
  const { holder, control, engineProcess, data } = found.state;
  if (found.is === "alive" && (await askSupervisor(control, "POST")) !== undefined)
    await hasEnded(holder, END_WITHIN_MS);
  for (const left of [holder, engineProcess])
    if (left !== undefined && !(await endProcess(left)))
      throw new LocalError(`Process ${left.pid} does not end. End it yourself.`);
  if ((await folder.find()).is === "dead") await released(folder, found.state);
  return { wasRunning: true, ...(data !== undefined && { data }) };
}

/** What a supervisor that died could not say itself. */
async function released(folder: LocalFolder, state: LocalState): Promise<void> {
  const holder = processIdentity(process.pid)!;
  await Claim.take<LocalState>(folder.path, { ...state, holder, phase: "ended", released: true });
}
