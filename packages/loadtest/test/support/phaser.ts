import type { Phase } from "artillery-engine-zae-limiter";

/**
 * The users that Artillery 2 creates, by running its loops without waiting: how it divides phases
 * among workers, and when each of its timers stops.
 */
export function createdByArtillery(phases: readonly Phase[], workers: number): number {
  let created = 0;
  for (let worker = 1; worker <= workers; worker += 1)
    for (const phase of phases) created += countOfWorker(phase, { worker, workers });
  return created;
}

function countOfWorker(
  { duration = 1, arrivalRate = 0, pause }: Phase,
  { worker, workers }: { readonly worker: number; readonly workers: number },
): number {
  if (pause !== undefined) return 0;
  let rate = 0;
  for (let user = 0; user < arrivalRate; user += 1) if (user % workers === worker - 1) rate += 1;
  return rate === 0 ? 0 : tick(1000 / rate, duration);
}

/** A timer of whole microseconds, which stops after as many ticks as fit into the duration. */
function tick(intervalMs: number, durationSeconds: number): number {
  const intervalUs = Math.floor(intervalMs * 1000);
  let ticks = 0;
  for (let at = intervalUs; at <= durationSeconds * 1e6; at += intervalUs) ticks += 1;
  return ticks;
}
