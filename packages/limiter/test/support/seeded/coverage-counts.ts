/** Counts how often a run of many seeds met each situation that it must have met. */
export class CoverageCounts<Situation extends string> {
  readonly #situations: readonly Situation[];
  readonly counts: Map<Situation, number>;

  constructor(situations: readonly Situation[]) {
    this.#situations = situations;
    this.counts = new Map(situations.map((situation) => [situation, 0]));
  }

  count(situation: Situation): void {
    this.counts.set(situation, this.counts.get(situation)! + 1);
  }

  get missing(): readonly Situation[] {
    return this.#situations.filter((situation) => this.counts.get(situation) === 0);
  }

  toString(): string {
    return this.#situations
      .map((situation) => `${String(this.counts.get(situation)).padStart(10)}  ${situation}`)
      .join("\n");
  }
}
