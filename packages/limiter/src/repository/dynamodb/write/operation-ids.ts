/*
 * A time-out leaves unknown whether a write happened. Each write therefore leaves its id in one of
 * the slots of the item (ADR 009).
 *
 *   id = writer.time count: 5 random letters, 7 for the millisecond and 2 that count within it; the
 *        order of the letters is the order of the writes of one process
 *   id<predecessor  what the slot held when its writer took it over; id< when it was free
 *
 *   own slot, else a free one, ──▶ write with id ──▶ reply: the outcome is known
 *   else the oldest one                 │
 *                                       └──▶ no reply: repeat with the same id, then see
 *                                            unanswered-writes.ts
 *
 * A writer that loses its slot learns what became of a write without an answer from the
 * predecessor, as long as that is kept. The time shows which slot its owner needs least: processes
 * that have ended leave theirs behind, and are the first to lose it. While every slot is in use, a
 * writer without one writes without an id, which it must not repeat.
 */
import { BoundedMap } from "../../../core/bounded-map.ts";
import type { Random } from "../../system-clock.ts";
import { SLOT_COUNT } from "../items/bucket-item.ts";

/** An operation id and the slot that it is written to. */
export interface OperationMark {
  /** With the predecessor, as it is stored. */
  readonly id: string;
  readonly writer: string;
  readonly slot: number;
  /** What the slot holds in the image. */
  readonly seenId: string | undefined;
  /**
   * Whether an earlier write of this process got no answer: this one must not follow it unnoticed.
   */
  readonly afterUnanswered: boolean;
}

/** In the order of their codes, so that ids compare like numbers. */
const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** Two processes with one name could take each other's writes for their own: one in 62⁵. */
const WRITER_LENGTH = 5;
/** Milliseconds since 1970, until 2081. */
const TIME_LENGTH = 7;
const COUNT_LENGTH = 2;
const LAST_COUNT = DIGITS.length ** COUNT_LENGTH - 1;
const TIME_START = WRITER_LENGTH + 1;
const TIME_END = TIME_START + TIME_LENGTH;
const ID_LENGTH = TIME_END + COUNT_LENGTH;

/**
 * A slot that was not written for this long is taken over without hesitation. Taking over one that
 * is in use fails its owner's next write, which then takes over another, and so on.
 */
const IDLE_MS = 2000;

/**
 * How many slots that are in use a process takes over within ten seconds: enough for one that has
 * just started, and few enough that 30 processes on one bucket soon stop taking over from others.
 * Without a bound, 59 % of the writes of 16 processes failed instead of 25 %, and calls ended as
 * contended.
 */
const MAX_HASTY = 8;
const HASTY_WINDOW_MS = 10_000;

/** Between an id and its predecessor. Ids are equally long, so it does not change their order. */
const TOOK = "<";

/** How long a predecessor is kept: longer than a call waits for its answers. */
const KEPT_MS = 30_000;

/** The most takeovers that are remembered; the predecessors of older ones are dropped. */
const MAX_TAKEOVERS = 1000;

/**
 * The most names of a process that are remembered: it takes a new one only when another process has
 * the same, so older ones are in no slot that matters.
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
  /** The time of the last id; it does not go back with the clock. */
  #timeMs = 0;
  #timeText = "";
  #count = 0;
  /** When slots were taken over, by their predecessors. */
  readonly #takenAtMs = new BoundedMap<string, number>(MAX_TAKEOVERS);
  #hasty = { sinceMs: -Infinity, count: 0 };

  constructor(random: Random) {
    this.#random = random;
    this.#names = [newName(random)];
  }

  /**
   * An id for the next write, and the slot for it; undefined when no slot is available. `pending`
   * is a write without an answer, whose slot must be taken again.
   */
  next(
    slots: readonly (string | undefined)[],
    {
      nowMs,
      pending,
    }: { readonly nowMs: number; readonly pending?: Pick<OperationMark, "slot"> | undefined },
  ): OperationMark | undefined {
    const slot = pending?.slot ?? this.#ownSlot(slots) ?? this.#otherSlot(slots, nowMs);
    if (slot === undefined) return undefined;
    const seenId = slots[slot];
    const suffix = this.#nextSuffix(nowMs);
    const name = this.#names.at(-1)!;
    // Ids of this process only grow: a later one is another process's.
    if (seenId !== undefined && isOf(name, seenId) && seenId >= `${name}.${suffix}`)
      this.#names = [...this.#names, newName(this.#random)].slice(-MAX_NAMES);
    const writer = this.#names.at(-1)!;
    const id = `${writer}.${suffix}${this.#formatTakeover(seenId, nowMs)}`;
    return { writer, slot, id, seenId, afterUnanswered: pending !== undefined };
  }

  /** What follows the id in a slot: what it was taken over from, for a while. */
  #formatTakeover(seenId: string | undefined, nowMs: number): string {
    if (seenId === undefined) return TOOK;
    if (this.#isOwn(seenId)) {
      const kept = seenId.slice(ID_LENGTH);
      const takenMs = kept === TOOK ? nowMs : this.#takenAtMs.get(kept);
      return takenMs !== undefined && nowMs - takenMs < KEPT_MS ? kept : "";
    }
    const taken = TOOK + withoutPredecessor(seenId);
    this.#takenAtMs.set(taken, nowMs);
    return taken;
  }

  #isOwn(id: string): boolean {
    for (const name of this.#names) if (isOf(name, id)) return true;
    return false;
  }

  #nextSuffix(nowMs: number): string {
    const isLater = nowMs > this.#timeMs;
    const isFull = !isLater && this.#count === LAST_COUNT;
    if (isLater || isFull) {
      this.#timeMs = isLater ? nowMs : this.#timeMs + 1;
      this.#timeText = formatNumber(this.#timeMs, TIME_LENGTH);
      this.#count = 0;
    } else this.#count += 1;
    return this.#timeText + formatNumber(this.#count, COUNT_LENGTH);
  }

  #ownSlot(slots: readonly (string | undefined)[]): number | undefined {
    for (let slot = 0; slot < slots.length; slot += 1) {
      const id = slots[slot];
      if (id !== undefined && this.#isOwn(id)) return slot;
    }
    return undefined;
  }

  /** A free slot, or the one that was written longest ago; any of them when several are alike. */
  #otherSlot(slots: readonly (string | undefined)[], nowMs: number): number | undefined {
    const start = Math.floor(this.#random() * SLOT_COUNT);
    let [oldest, oldestMs] = [start, Infinity];
    for (let offset = 0; offset < SLOT_COUNT; offset += 1) {
      const slot = (start + offset) % SLOT_COUNT;
      const writtenMs = parseWrittenAtMs(slots[slot], nowMs);
      if (writtenMs < oldestMs) [oldest, oldestMs] = [slot, writtenMs];
    }
    return this.#mayTakeOver(nowMs - oldestMs, nowMs) ? oldest : undefined;
  }

  /** Whether a slot may be taken over that was written so long ago; counts hasty takeovers. */
  #mayTakeOver(ageMs: number, nowMs: number): boolean {
    if (ageMs >= IDLE_MS) return true;
    if (nowMs - this.#hasty.sinceMs >= HASTY_WINDOW_MS) this.#hasty = { sinceMs: nowMs, count: 0 };
    this.#hasty.count += 1;
    return this.#hasty.count <= MAX_HASTY;
  }
}

/** An id without what it was taken over from. */
export function withoutPredecessor(id: string): string {
  return id.split(TOOK)[0]!;
}

/**
 * The id that a slot held when the writer of this one took it over; empty when it was free,
 * undefined when that is no longer known.
 */
export function findPredecessor(id: string): string | undefined {
  return id.split(TOOK)[1];
}

/**
 * When an id was made, by the clock of its writer; never for a free slot. One from the future
 * counts as new: its writer's clock is ahead.
 */
function parseWrittenAtMs(id: string | undefined, nowMs: number): number {
  if (id === undefined) return -Infinity;
  return Math.min(nowMs, parseNumber(id.slice(TIME_START, TIME_END)));
}

/** Whether an id is of the writer with this name. */
function isOf(name: string, id: string): boolean {
  return id[WRITER_LENGTH] === "." && id.startsWith(name);
}

function newName(random: Random): string {
  return Array.from(
    { length: WRITER_LENGTH },
    () => DIGITS[Math.floor(random() * DIGITS.length)]!,
  ).join("");
}

function formatNumber(number: number, length: number): string {
  let text = "";
  for (let rest = number; text.length < length; rest = Math.floor(rest / DIGITS.length))
    text = DIGITS[rest % DIGITS.length]! + text;
  return text;
}

function parseNumber(text: string): number {
  return Array.from(text).reduce((sum, digit) => sum * DIGITS.length + DIGITS.indexOf(digit), 0);
}
