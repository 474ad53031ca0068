/*
 * Quotas and sessions of one bucket, judged write by write from what is stored before and after.
 * Every call carries marks: amounts under names that nothing limits, so that the totals of a bucket
 * show which calls a write carried out. A call owns two digits to the base of 4:
 *
 *   take +1 +1     rollback -1 -1     settle down 0 -1     settle up, charge 0 +1
 *
 * From these follows what the write must have done. Nothing else may move a balance: it is the
 * capacity less what was charged in its window, and what was given back to the same one.
 */

/** An item as the table holds it. */
export type WindowItem = { readonly [attribute: string]: object };

/** What an oracle must know of a call. */
export interface MarkedCall {
  readonly id: number;
  readonly kind: "lease" | "charge";
  /** Whole tokens by limit, the marks left out. */
  readonly amounts: Readonly<Record<string, number>>;
  /** How much it settles up or down; all of one sign. */
  deltas: Readonly<Record<string, number>>;
  /** Whether its process cannot know which window it took from. */
  isUnsure: boolean;
}

/** Calls whose marks share a name. */
const CALLS_PER_NAME = 10;

/** The name that the marks of a call are counted under. */
export function markName(id: number): string {
  return `f${Math.floor(id / CALLS_PER_NAME)}`;
}

/** The marks of a take or charge, and of a settlement. */
export function markAmounts(id: number, kind: "lease" | "charge" | "settle"): number {
  const low = 4 ** (2 * (id % CALLS_PER_NAME));
  return kind === "lease" ? 5 * low : 4 * low;
}

/** What clocks show. */
export interface Clocks {
  /** The earliest clock when the write was decided; the others are of when it lands. */
  readonly decidedMs: number;
  readonly earliestMs: number;
  readonly latestMs: number;
}

/** What one write did, to be counted. */
export type WindowEvent =
  | "opened"
  | "opened by a clock that is ahead"
  | "opened with several calls"
  | "session opened"
  | "opened by the creation"
  | "opened by a charge"
  | "given back"
  | "rolled back over an end"
  | "settled down over an end"
  | "settled up over an end"
  | "capacity raised inside a window"
  | "capacity lowered inside a window"
  | "definition changed inside a window"
  | "definition changed after a window"
  | "kind changed"
  | "limit left inside a window"
  | "limit came back inside a window"
  | "ttl set near an end";

/** One window, whose identity is the object. Changed definitions move its end. */
interface Window {
  end: number;
  /** Whether it began when a limit of another kind became this one. */
  readonly isOfOtherKind: boolean;
}

interface Taken {
  readonly window: Window | undefined;
  readonly end: number;
}

interface Stored {
  readonly exists: boolean;
  readonly isHidden: boolean;
  readonly definition: string | undefined;
  readonly tokens: number;
  readonly capacity: number;
  readonly end: number;
  readonly total: number;
}

interface Landed {
  readonly call: MarkedCall;
  readonly what: "take" | "rollback" | "down" | "up" | "charge";
  readonly times: number;
}

/** How near to an end a write must be to count as near. */
const NEAR_MS = 2500;

/** Judges one bucket. */
export class WindowOracle {
  readonly #calls: readonly MarkedCall[];
  readonly #names: readonly string[];
  readonly #shiftMs: number;
  readonly #note: (event: WindowEvent) => void;
  readonly #open = new Map<string, Window | undefined>();
  /**
   * By call and limit the window that the call took from; undefined if the limit had none. What it
   * was not charged for has no entry.
   */
  readonly #taken = new Map<string, Taken>();
  /** Every boundary that a window was opened for. */
  readonly #opened = new Map<string, Window>();
  /** How often each call was carried out, less how often it was undone. */
  readonly landed = new Map<number, { takes: number; settlements: number }>();

  constructor(options: {
    /** Of all buckets; more may join. */
    readonly calls: readonly MarkedCall[];
    readonly names: readonly string[];
    /** By how much boundaries of the same calendar differ between processes. */
    readonly shiftMs: number;
    readonly note: (event: WindowEvent) => void;
  }) {
    this.#calls = options.calls;
    this.#names = options.names;
    this.#shiftMs = options.shiftMs;
    this.#note = options.note;
  }

  /** Throws when a write did what no call accounts for; returns what it carried out, as text. */
  judge(before: WindowItem | undefined, after: WindowItem, clocks: Clocks): string {
    const landed = this.#listLanded(before, after);
    const text = landed.map(({ call, what, times }) => `${what} ${call.id} ${times}`).join(", ");
    for (const { call, what, times } of landed) {
      const count = this.landed.get(call.id) ?? { takes: 0, settlements: 0 };
      this.landed.set(call.id, count);
      if (what === "take") count.takes += 1;
      else if (what === "rollback") count.takes -= 1;
      else count.settlements += times;
    }
    for (const name of this.#names) {
      const [old, now] = [readStored(before, name), readStored(after, name)];
      try {
        this.#judgeLimit(name, { old, now, landed, clocks });
        checkExpiry(after, { old, now, shiftMs: this.#shiftMs });
        this.#noteChanges({ old, now, landed, clocks }, after);
      } catch (error) {
        throw new Error(
          `${name}: ${(error as Error).message}\n${JSON.stringify({ old, now, clocks })}\n` + text,
          { cause: error },
        );
      }
    }
    return text;
  }

  /** The item has expired. */
  forget(): void {
    this.#open.clear();
  }

  #judgeLimit(name: string, write: JudgedWrite): void {
    const { old, now, landed, clocks } = write;
    const counted = landed.reduce((sum, each) => sum + getAmount(each, name), 0);
    if (now.total - old.total !== counted) fail(`its total is not what its calls say: ${counted}`);
    const charges = this.#sumCharges(name, write);
    const next = now.definition === undefined ? undefined : this.#findWindow(name, write, charges);
    const window = this.#open.get(name);
    if (now.definition !== undefined) {
      const returns = this.#sumReturns(name, write, next);
      const isNew = next !== window || !old.exists;
      const start = isNew ? now.capacity : old.tokens + now.capacity - old.capacity;
      const must = charges.must + returns.must;
      const spent = start - now.tokens;
      if (isOtherKind(write)) {
        const begun = now.tokens + must;
        if (begun > now.capacity) fail(`the other kind begins with ${begun}`);
        const returned = -returns.may.reduce((sum, each) => sum + each, 0);
        if (old.end > clocks.latestMs && begun > old.tokens + returned)
          fail("another kind adds tokens");
      } else if (!isSum(spent - must, [...charges.may, ...returns.may]))
        fail(`${spent} were charged, and not ${must} or some of ${charges.may} ${returns.may}`);
      if (now.tokens > now.capacity) fail("it holds more than its capacity");
      const isTaken = landed.some(({ call, what }) => what === "take" && getCost(call, name) > 0);
      if (isTaken && !now.isHidden && now.tokens + charges.unasked < 0)
        fail("more was granted than the window held");
    }
    this.#noteEnds(name, write, next);
    if (next !== undefined) next.end = now.end;
    this.#open.set(name, next);
    for (const { call, what } of landed) {
      if (what !== "take") continue;
      const key = `${call.id} ${name}`;
      const charged = getCost(call, name) > 0 ? next : undefined;
      if (now.exists && !now.isHidden) this.#taken.set(key, { window: charged, end: now.end });
      // It may have been taken before, and undone.
      else this.#taken.delete(key);
    }
  }

  /** What calls charge: for certain, perhaps, and without asking whether it fits. */
  #sumCharges(name: string, { now, landed }: JudgedWrite): Charges {
    let [must, unasked] = [0, 0];
    const may: number[] = [];
    for (const each of landed) {
      const amount = getAmount(each, name);
      if (amount <= 0) continue;
      const isDecided = each.what === "take" || each.what === "charge";
      if (each.what !== "take") unasked += amount;
      // What a take was not charged for, its end only counts.
      if (now.isHidden ? !isDecided : !isDecided && !this.#taken.has(`${each.call.id} ${name}`))
        may.push(amount);
      else if (!now.isHidden) must += amount;
    }
    return { must, may, unasked };
  }

  /** What goes back to the window that it was taken from, negative; nothing to another one. */
  #sumReturns(
    name: string,
    write: JudgedWrite,
    next: Window | undefined,
  ): Omit<Charges, "unasked"> {
    const { old, now, landed, clocks } = write;
    let must = 0;
    const may: number[] = [];
    for (const each of landed) {
      const amount = getAmount(each, name);
      if (amount >= 0 || next === undefined) continue;
      const taken = this.#taken.get(`${each.call.id} ${name}`);
      if (taken === undefined) continue;
      // A limit that became a rate and a quota again has another window with the same end.
      if (taken.window !== next && next.isOfOtherKind && taken.end === now.end) may.push(amount);
      if (taken.window !== next) continue;
      // Under another calendar its end has moved, and nothing goes back any more.
      const isOpen = clocks.latestMs < old.end && now.end === old.end && taken.end === old.end;
      if (isOpen && !each.call.isUnsure && !now.isHidden) {
        must += amount;
        this.#note("given back");
      } else may.push(amount);
    }
    return { must, may };
  }

  #noteEnds(name: string, { old, landed, clocks }: JudgedWrite, next: Window | undefined): void {
    for (const { call, what } of landed) {
      const taken = this.#taken.get(`${call.id} ${name}`)?.window;
      if (taken === undefined || (taken === next && clocks.earliestMs < old.end)) continue;
      if (what === "rollback") this.#note("rolled back over an end");
      if (what === "down") this.#note("settled down over an end");
      if (what === "up") this.#note("settled up over an end");
    }
  }

  /** The window that is open after a write: the one before, a new one, or none. */
  #findWindow(name: string, write: JudgedWrite, { must, may }: Charges): Window | undefined {
    const { old, now, landed, clocks } = write;
    const window = this.#open.get(name);
    const isCharged = must > 0 || may.length > 0;
    const isSame = old.end === now.end && old.definition === now.definition;
    if (isSame && old.exists) {
      if (now.end === 0 && must > 0) fail("a charge opened no window");
      return window;
    }
    if (now.end === 0) {
      if (must > 0) fail("a charge opened no window");
      if (old.end > clocks.latestMs) fail("an open window was closed");
      return undefined;
    }
    if (!old.exists) {
      if (!isCharged) fail("a window was opened that nothing is charged in");
      this.#note("opened by the creation");
      return this.#enter(name, write, { end: now.end, isOfOtherKind: false });
    }
    if (isOtherKind(write)) return this.#enter(name, write, { end: now.end, isOfOtherKind: true });
    if (old.definition !== now.definition && window !== undefined) {
      // By some clocks it may be over. Then what is left of it shows by which it was.
      const isContinued =
        old.end === now.end ||
        clocks.latestMs < old.end ||
        (clocks.decidedMs < old.end &&
          old.tokens + now.capacity - old.capacity - must === now.tokens);
      if (isContinued) return this.#enter(name, write, window);
    } else if (!isCharged) fail("a window was opened that nothing is charged in");
    if (old.end > clocks.latestMs) fail("a window was opened before the last one was over");
    if (clocks.earliestMs < old.end) this.#note("opened by a clock that is ahead");
    if (landed.length > 1) this.#note("opened with several calls");
    if (landed.some(({ what }) => what === "charge")) this.#note("opened by a charge");
    this.#note(parseKind(now) === "session" ? "session opened" : "opened");
    return this.#enter(name, write, { end: now.end, isOfOtherKind: false });
  }

  /** A window is opened once for each boundary. */
  #enter(name: string, write: JudgedWrite, window: Window): Window {
    const { old, now, clocks } = write;
    if (parseKind(now) === "session") return window;
    const period = readPeriod(now.definition!);
    const isBoundary = [0, this.#shiftMs].some((shift) => (now.end + shift) % period === 0);
    if (!isBoundary) fail(`its calendar has no boundary at ${now.end}`);
    if (now.end > clocks.latestMs + period + this.#shiftMs) fail("its window is too long");
    const key = `${name} ${period} ${Math.round(now.end / period)}`;
    const earlier = this.#opened.get(key);
    // A late creation may open one that is over by all clocks. By other boundaries, a window may
    // be part of one that others were a part of.
    const isLate = !old.exists && now.end <= clocks.earliestMs;
    const isPart = old.definition !== undefined && readPeriod(old.definition) !== period;
    const isAgain = earlier !== undefined && earlier !== window;
    if (isAgain && !isOtherKind(write) && !isLate && !isPart)
      fail(`the window until ${now.end} was opened again`);
    this.#opened.set(key, window);
    return window;
  }

  #listLanded(before: WindowItem | undefined, after: WindowItem): readonly Landed[] {
    const landed: Landed[] = [];
    const differences = new Map<string, readonly number[]>();
    for (const call of this.#calls) {
      const name = markName(call.id);
      const digits = differences.get(name) ?? readDigits(before, after, name);
      differences.set(name, digits);
      const place = 2 * (call.id % CALLS_PER_NAME);
      const [low, high] = [digits[place]!, digits[place + 1]!];
      if (low === 0 && high === 0) continue;
      const what = WHAT.get(`${low} ${Math.sign(high)}`);
      if (what === undefined) throw new Error(`Call ${call.id} has the marks ${low} ${high}`);
      const isCharge = what === "up" && call.kind === "charge";
      landed.push({ call, what: isCharge ? "charge" : what, times: Math.abs(high) });
    }
    return landed;
  }

  #noteChanges({ old, now, clocks }: JudgedWrite, after: WindowItem): void {
    const isOpen = old.end > clocks.latestMs;
    if (!old.exists) return;
    const isRaised = now.capacity > old.capacity;
    if (parseKind(old) !== parseKind(now)) this.#note("kind changed");
    else if (old.definition !== now.definition)
      this.#note(
        isOpen ? "definition changed inside a window" : "definition changed after a window",
      );
    else if (isOpen && now.capacity !== old.capacity)
      this.#note(isRaised ? "capacity raised inside a window" : "capacity lowered inside a window");
    if (isOpen && now.isHidden !== old.isHidden)
      this.#note(now.isHidden ? "limit left inside a window" : "limit came back inside a window");
    const isNear = Math.abs(old.end - clocks.latestMs) < NEAR_MS;
    if (after["ttl"] !== undefined && isNear) this.#note("ttl set near an end");
  }
}

interface JudgedWrite {
  readonly old: Stored;
  readonly now: Stored;
  readonly landed: readonly Landed[];
  readonly clocks: Clocks;
}

interface Charges {
  readonly must: number;
  readonly may: readonly number[];
  readonly unasked: number;
}

const WHAT = new Map<string, Landed["what"]>([
  ["1 1", "take"],
  ["-1 -1", "rollback"],
  ["0 -1", "down"],
  ["0 1", "up"],
]);

function fail(message: string): never {
  throw new Error(message);
}

/**
 * An item may not expire before its windows end. What opens a window has seen it last, so it leaves
 * room for the next one too, which others may open meanwhile.
 */
function checkExpiry(
  item: WindowItem,
  { old, now, shiftMs }: Pick<JudgedWrite, "old" | "now"> & { readonly shiftMs: number },
): void {
  if (item["ttl"] === undefined || now.definition === undefined || now.end === 0) return;
  const expiresMs = readNumber(item, "ttl") * 1000;
  const isOpened = old.end !== now.end;
  const leastMs = isOpened ? now.end + readPeriod(now.definition) - shiftMs : now.end;
  if (expiresMs < leastMs) fail(`it may expire at ${expiresMs}, before ${leastMs}`);
}

/** In millitokens, negative for what goes back. */
function getAmount({ call, what, times }: Landed, name: string): number {
  if (what === "take" || what === "charge") return getCost(call, name);
  if (what === "rollback") return -getCost(call, name);
  return times * (call.deltas[name] ?? 0) * 1000;
}

function getCost(call: MarkedCall, name: string): number {
  return (call.amounts[name] ?? 0) * 1000;
}

function isOtherKind({ old, now }: JudgedWrite): boolean {
  return old.exists && parseKind(old) !== parseKind(now);
}

function parseKind({ definition }: Pick<Stored, "definition">): "rate" | "session" | "quota" {
  if (definition === undefined) return "rate";
  return definition.includes("session(") ? "session" : "quota";
}

/** The length of the windows of a definition as it is stored; of a calendar of equal windows. */
function readPeriod(definition: string): number {
  const session = /session\((\d*)(sec|min|hour|day)\)/.exec(definition);
  if (session !== null) return Number(session[1] || 1) * UNITS_MS[session[2]!]!;
  const steps = /cron\((?:\*\/(\d+)|\*)_\*_\*_\*_\*\)/.exec(definition);
  if (steps !== null) return Number(steps[1] ?? 1) * UNITS_MS["min"]!;
  const calendar = /\/(hour|day)@/.exec(definition);
  if (calendar === null) fail(`unknown definition ${definition}`);
  return UNITS_MS[calendar[1]!]!;
}

const UNITS_MS: Readonly<Record<string, number>> = {
  sec: 1000,
  min: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
};

/** Whether some of the numbers add up to a sum. */
function isSum(sum: number, [first, ...rest]: readonly number[]): boolean {
  if (first === undefined) return sum === 0;
  return isSum(sum, rest) || isSum(sum - first, rest);
}

function readStored(item: WindowItem | undefined, name: string): Stored {
  const read = (field: string): number => readNumber(item, `b_${name}_${field}`);
  return {
    exists: item?.[`b_${name}_tk`] !== undefined,
    isHidden: item?.[`b_${name}_hd`] !== undefined,
    definition: readText(item, `b_${name}_kd`),
    tokens: read("tk"),
    capacity: read("cp"),
    end: read("we"),
    total: read("tc"),
  };
}

/** A number, and 0 where there is none. */
export function readNumber(item: WindowItem | undefined, attribute: string): number {
  return Number(readText(item, attribute) ?? 0);
}

function readText(item: WindowItem | undefined, attribute: string): string | undefined {
  return Object.values(item?.[attribute] ?? {})[0] as string | undefined;
}

/** By how much each digit under a name of marks has changed: -1 … 2. */
function readDigits(
  before: WindowItem | undefined,
  after: WindowItem,
  name: string,
): readonly number[] {
  const attribute = `b_${name}_tc`;
  let rest = (readNumber(after, attribute) - readNumber(before, attribute)) / 1000;
  return Array.from({ length: 2 * CALLS_PER_NAME }, () => {
    const digit = (((((rest % 4) + 4) % 4) + 1) % 4) - 1;
    rest = (rest - digit) / 4;
    return digit;
  });
}
