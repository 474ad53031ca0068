/*
 * What the members of a batch do to one limit, one after another in order of arrival (design §5.2).
 * The write that carries them finds a balance that nobody has seen, so the batch is not judged by
 * its net amount but by its way:
 *
 *   need   the most that an acquire on the way asks of the balance at the start: with less, a member was granted what was not there
 *   rise   how far gives lift the balance before something is charged: above the ceiling they would have been cut off first
 */

/** The way of one limit through a batch. */
export class LimitFold {
  /** What all members take together; negative when they give back more. */
  netMilli = 0;
  /** Undefined when no member asks whether it fits. */
  needMilli: number | undefined;
  riseMilli = 0;
  /** Whether any member takes, so that it matters where the ceiling cuts off. */
  isCharged = false;
  readonly #costs: number[] = [];

  /**
   * A member that is granted only if the balance holds its cost, or, when it costs nothing, is not
   * in debt.
   */
  take(costMilli: number): void {
    this.settle(costMilli);
    this.needMilli = Math.max(this.needMilli ?? -Infinity, this.netMilli);
  }

  /** A member that is charged or given back without being asked whether it fits. */
  settle(costMilli: number): void {
    if (costMilli === 0) return;
    if (costMilli > 0) {
      this.isCharged = true;
      this.riseMilli = Math.max(this.riseMilli, -this.netMilli);
    }
    this.netMilli += costMilli;
    this.#costs.push(costMilli);
  }

  /**
   * Where the way ends that begins at a balance, under a ceiling; `wasFull` when it touched the
   * ceiling, where fractions are lost.
   */
  after(
    startMilli: number,
    ceilingMilli: number,
  ): { readonly milli: number; readonly wasFull: boolean } {
    let milli = startMilli;
    let wasFull = startMilli >= ceilingMilli;
    for (const cost of this.#costs) {
      milli = Math.max(Math.min(ceilingMilli, milli - cost), Number.MIN_SAFE_INTEGER);
      wasFull ||= milli >= ceilingMilli;
    }
    return { milli, wasFull };
  }
}
