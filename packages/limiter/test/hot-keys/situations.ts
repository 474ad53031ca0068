/** Everything that a run must have met, or it has proven less than it says. */
export const SITUATIONS = [
  "grant",
  "refusal",
  "unavailable",
  "further take",
  "settlement",
  "give-back",
  "end that was tried again",
  "write of a process with several calls under way",
  "write that granted several calls",
  "failed condition",
  "request lost",
  "reply lost",
  "reply lost of an applied write",
  "request never sent",
  "throttled",
  "transaction conflict",
  "batch read at several moments",
  "time-out",
  "late write applied",
  "crash",
  "crash with a write asked",
  "crash with a write applied, not answered",
  "crash with a lease",
  "clock set back",
  "configuration change",
  "call as large as the capacity",
  "split asked",
  "split",
  "split of a debt",
  "call that gathered from several shards",
  "split between decision and write",
  "split between write and reply",
  "split between take and end",
] as const;

export type Situation = (typeof SITUATIONS)[number];

/** Counts what happened. */
export class Situations {
  readonly counts = new Map<Situation, number>(SITUATIONS.map((situation) => [situation, 0]));

  count(situation: Situation): void {
    this.counts.set(situation, this.counts.get(situation)! + 1);
  }

  get missing(): readonly Situation[] {
    return SITUATIONS.filter((situation) => this.counts.get(situation) === 0);
  }

  toString(): string {
    return SITUATIONS.map((situation) => `${String(this.counts.get(situation)).padStart(8)}  ${situation}`).join("\n");
  }
}
