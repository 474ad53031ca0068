/*
 * A time-out leaves unknown whether a write happened. Each write therefore leaves its id in one of four slots of the item (design §5.4).
 *
 *   id = writer.sequence: 5 and 4 letters whose order is the order of time
 *
 *   own slot, else a free one ──▶ write with id ──▶ reply                ──▶ known
 *                                      │
 *                                      └─▶ no reply ──▶ repeat with the same id ──▶ slot = my id        ──▶ it was applied
 *                                                                               ├─▶ slot as it was seen ──▶ this attempt applied it
 *                                                                               └─▶ overwritten         ──▶ unknown
 *
 * A writer that finds neither takes over another's slot now and then, and otherwise writes without an id, which it must not repeat.
 */
import type { Random } from "../system-clock.ts";
import { SLOT_COUNT } from "./bucket-item.ts";
import type { OperationMark } from "./expressions.ts";

/** In the order of their codes, so that ids compare like numbers. */
const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const WRITER_LENGTH = 5;
const SEQUENCE_LENGTH = 4;
const LAST_SEQUENCE = DIGITS.length ** SEQUENCE_LENGTH - 1;

/** How often a writer without a slot takes over another's: seldom, because that makes the other's unknown outcomes unknowable. */
const TAKE_OVER_CHANCE = 0.1;

/** Names the operations of one process. */
export class OperationIds {
  readonly #random: Random;
  #writer: string;

  constructor(random: Random) {
    this.#random = random;
    this.#writer = newWriter(random);
  }

  /** An id for the next write, and the slot for it; undefined when there is no slot to be had. */
  next(slots: readonly (string | undefined)[]): OperationMark | undefined {
    const own = slots.findIndex((id) => id?.startsWith(`${this.#writer}.`));
    const last = own < 0 ? -1 : sequenceOf(slots[own]!);
    if (last >= LAST_SEQUENCE) {
      this.#writer = newWriter(this.#random);
      return { writer: this.#writer, slot: own, id: idOf(this.#writer, 0) };
    }
    const slot = own >= 0 ? own : this.#freeSlot(slots);
    return slot === undefined ? undefined : { writer: this.#writer, slot, id: idOf(this.#writer, last + 1) };
  }

  #freeSlot(slots: readonly (string | undefined)[]): number | undefined {
    const start = Math.floor(this.#random() * SLOT_COUNT);
    const order = Array.from({ length: SLOT_COUNT }, (_, offset) => (start + offset) % SLOT_COUNT);
    return order.find((slot) => slots[slot] === undefined) ?? (this.#random() < TAKE_OVER_CHANCE ? start : undefined);
  }
}

function newWriter(random: Random): string {
  return Array.from({ length: WRITER_LENGTH }, () => DIGITS[Math.floor(random() * DIGITS.length)]!).join("");
}

function idOf(writer: string, sequence: number): string {
  let text = "";
  for (let rest = sequence; text.length < SEQUENCE_LENGTH; rest = Math.floor(rest / DIGITS.length))
    text = DIGITS[rest % DIGITS.length]! + text;
  return `${writer}.${text}`;
}

function sequenceOf(id: string): number {
  return Array.from(id.slice(-SEQUENCE_LENGTH)).reduce((sum, digit) => sum * DIGITS.length + DIGITS.indexOf(digit), 0);
}
