import type { EngineRecord } from "../../support/virtual-stream.ts";

const HOUR_MS = 3_600_000;

/**
 * The phases of a history, and when the stream tells that each happened: on both sides of the end
 * of an hour, of a day and of a month. The month is a recent one, so that no usage of it expires.
 */
export class PhaseTimes {
  readonly #startsMs: readonly number[];
  /** The last sequence number of each phase that is over. */
  readonly #ends: bigint[] = [];

  constructor(nowMs: number) {
    const date = new Date(nowMs);
    const monthMs = Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
    this.#startsMs = [
      monthMs - 2 * HOUR_MS,
      monthMs - HOUR_MS,
      monthMs,
      monthMs + 23 * HOUR_MS,
      monthMs + 24 * HOUR_MS,
    ];
  }

  get count(): number {
    return this.#startsMs.length;
  }

  /** The hour of the phase that is under way. */
  get nowMs(): number {
    return this.#startsMs[this.#phase]!;
  }

  endPhase(lastSequenceNumber: string): void {
    this.#ends.push(BigInt(lastSequenceNumber));
  }

  /** When a record was written: some second of its phase's hour, the first and last included. */
  getTime({ dynamodb: { SequenceNumber } }: EngineRecord): number {
    const number = BigInt(SequenceNumber);
    const phase = this.#ends.findIndex((end) => number <= end);
    const startMs = this.#startsMs[phase < 0 ? this.#phase : phase]!;
    return startMs + Number(number % 60n) * 61_000;
  }

  /** The phase that is under way; the last one does not end. */
  get #phase(): number {
    return Math.min(this.#ends.length, this.count - 1);
  }
}
