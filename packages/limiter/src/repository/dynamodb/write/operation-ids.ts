/*
 * A time-out leaves unknown whether a write happened. Each write therefore leaves its id in one of
 * four slots of the item (ADR 018).
 *
 *   id = writer.sequence: 5 and 4 letters whose order is the order of time
 *
 *   own slot, else a free one ──▶ write with id ──▶ reply: the outcome is known
 *                                      │
 *                                      └──▶ no reply: repeat with the same id, then see
 *                                           unanswered-writes.ts
 *
 * A writer that finds neither takes over another's slot now and then, and otherwise writes without
 * an id, which it must not repeat.
 */
import type { Random } from "../../system-clock.ts";
import { SLOT_COUNT } from "../items/bucket-item.ts";

/** An operation id and the slot that it is written to. */
export interface OperationMark {
  readonly id: string;
  readonly writer: string;
  readonly slot: number;
  /** What the slot holds in the image. */
  readonly seenId: string | undefined;
}

/** In the order of their codes, so that ids compare like numbers. */
const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const WRITER_LENGTH = 5;
const SEQUENCE_LENGTH = 4;
const LAST_SEQUENCE = DIGITS.length ** SEQUENCE_LENGTH - 1;

/**
 * How often a writer without a slot takes over another's: seldom, because the other writer can then
 * no longer learn its unknown outcomes.
 */
const TAKE_OVER_PROBABILITY = 0.1;

/**
 * The most names of a process that are remembered: it takes a new one every 15 million writes, so
 * older ones are in no slot that matters.
 */
const MAX_NAMES = 8;

/**
 * Names the operations of one process. No id is ever used twice, not even for another bucket: a
 * lost request that arrives late must not be taken for a later one.
 */
export class OperationIds {
  readonly #random: Random;
  /** The names of this process, the current one last. */
  #names: readonly string[];
  #sequence = 0;

  constructor(random: Random) {
    this.#random = random;
    this.#names = [newName(random)];
  }

  /**
   * An id for the next write, and the slot for it; undefined when no slot is available. `pending`
   * is a write without an answer, whose slot must be taken again.
   */
  next(slots: readonly (string | undefined)[], pending?: OperationMark): OperationMark | undefined {
    const slot = pending?.slot ?? this.#ownSlot(slots) ?? this.#freeSlot(slots);
    if (slot === undefined) return undefined;
    const seenId = slots[slot];
    const isTaken =
      seenId?.startsWith(`${this.#names.at(-1)}.`) === true && sequenceOf(seenId) >= this.#sequence;
    if (isTaken || this.#sequence > LAST_SEQUENCE) this.#rename();
    const writer = this.#names.at(-1)!;
    const id = idOf(writer, this.#sequence);
    this.#sequence += 1;
    return { writer, slot, id, seenId };
  }

  /** Takes a new name: the sequence is used up, or another process has the same name. */
  #rename(): void {
    this.#names = [...this.#names, newName(this.#random)].slice(-MAX_NAMES);
    this.#sequence = 0;
  }

  #ownSlot(slots: readonly (string | undefined)[]): number | undefined {
    const own = slots.findIndex((id) => this.#names.some((name) => id?.startsWith(`${name}.`)));
    return own < 0 ? undefined : own;
  }

  #freeSlot(slots: readonly (string | undefined)[]): number | undefined {
    const start = Math.floor(this.#random() * SLOT_COUNT);
    const order = Array.from({ length: SLOT_COUNT }, (_, offset) => (start + offset) % SLOT_COUNT);
    return (
      order.find((slot) => slots[slot] === undefined) ??
      (this.#random() < TAKE_OVER_PROBABILITY ? start : undefined)
    );
  }
}

function newName(random: Random): string {
  return Array.from(
    { length: WRITER_LENGTH },
    () => DIGITS[Math.floor(random() * DIGITS.length)]!,
  ).join("");
}

function idOf(writer: string, sequence: number): string {
  let text = "";
  for (let rest = sequence; text.length < SEQUENCE_LENGTH; rest = Math.floor(rest / DIGITS.length))
    text = DIGITS[rest % DIGITS.length]! + text;
  return `${writer}.${text}`;
}

function sequenceOf(id: string): number {
  return Array.from(id.slice(-SEQUENCE_LENGTH)).reduce(
    (sum, digit) => sum * DIGITS.length + DIGITS.indexOf(digit),
    0,
  );
}
