/*
 * Work that many callers want at the same time, and that must start after they asked for it:
 *
 *   join ──▶ none is under way: starts now ──▶ ends
 *     └────▶ one is under way: shares the next with all that join until it starts
 */

interface Round<T> {
  readonly underWay: Promise<T>;
  next: Promise<T> | undefined;
}

/** Rounds of work, by key; at most one of a key is under way. */
export class SharedRounds<T> {
  readonly #rounds = new Map<string, Round<T>>();

  /** The outcome of a round that begins now or later. */
  join(key: string, begin: () => Promise<T>): Promise<T> {
    const round = this.#rounds.get(key);
    if (round === undefined) return this.#begin(key, begin);
    const beginNext = (): Promise<T> => this.#begin(key, begin);
    return (round.next ??= round.underWay.then(beginNext, beginNext));
  }

  #begin(key: string, begin: () => Promise<T>): Promise<T> {
    const round: Round<T> = { underWay: begin(), next: undefined };
    this.#rounds.set(key, round);
    const end = (): void => {
      if (round.next === undefined) this.#rounds.delete(key);
    };
    round.underWay.then(end, end);
    return round.underWay;
  }
}
