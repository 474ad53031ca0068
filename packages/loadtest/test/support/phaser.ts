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
  { duration = 1, arrivalRate = 0, arrivalCount, rampTo, pause }: Phase,
  { worker, workers }: { readonly worker: number; readonly workers: number },
): number {
  if (pause !== undefined) return 0;
  if (arrivalCount !== undefined)
    return worker === 1 ? tick((duration * 1000) / arrivalCount, duration) : 0;
  if (rampTo === undefined) {
    let rate = 0;
    for (let user = 0; user < arrivalRate; user += 1) if (user % workers === worker - 1) rate += 1;
    return rate === 0 ? 0 : tick(1000 / rate, duration);
  }
  let created = 0;
  for (let second = 0; second < duration; second += 1) {
    const [from, to] = [arrivalRate / workers, rampTo / workers];
    const raw = duration === 1 ? (from + to) / 2 : ((to - from) / (duration - 1)) * second + from;
    created += Math.floor(raw) + (Math.round((raw % 1) * workers) >= worker ? 1 : 0);
  }
  return created;
}

/** A timer of whole microseconds, which stops after as many ticks as fit into the duration. */
function tick(intervalMs: number, durationSeconds: number): number {
  const intervalUs = Math.floor(intervalMs * 1000);
  let ticks = 0;
  for (let at = intervalUs; at <= durationSeconds * 1e6; at += intervalUs) ticks += 1;
  return ticks;
}
