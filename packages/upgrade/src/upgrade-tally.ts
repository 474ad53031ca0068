import { isChange, type Change } from "./change.ts";

/** The counts of one kind of items. */
export interface UpgradeCount {
  /** Groups of items that are written or deleted. */
  readonly changed: number;
  /** Groups of items that are fine as they are. */
  readonly unchanged: number;
}

/** The most texts of one list in a report; if there are more, the report says so at the end. */
const MAX_TEXTS = 100;

/** Counts what an upgrade does, or would do. */
export class UpgradeTally {
  readonly #counts = new Map<string, { changed: number; unchanged: number }>();
  readonly #dropped = new Texts();
  readonly #left = new Texts();
  #total = 0;

  count(change: Change): void {
    const counts = this.#counts.get(change.kind) ?? { changed: 0, unchanged: 0 };
    this.#counts.set(change.kind, counts);
    if (isChange(change)) counts.changed += 1;
    else counts.unchanged += 1;
    this.#total += 1;
    this.#dropped.add(change.dropped);
    this.#left.add(change.left);
  }

  /** Groups of items so far. */
  get total(): number {
    return this.#total;
  }

  /** By kind, in alphabetical order. */
  get counts(): Readonly<Record<string, UpgradeCount>> {
    const kinds = [...this.#counts].sort(([left], [right]) => (left < right ? -1 : 1));
    return Object.fromEntries(kinds);
  }

  /** What cannot be enforced afterwards. */
  get dropped(): readonly string[] {
    return this.#dropped.list();
  }

  /** What stays, unused. */
  get left(): readonly string[] {
    return this.#left.list();
  }
}

/** Distinct texts, within bounds. */
class Texts {
  readonly #texts = new Set<string>();
  #isCut = false;

  add(texts: readonly string[] = []): void {
    for (const text of texts)
      if (this.#texts.size < MAX_TEXTS) this.#texts.add(text);
      else this.#isCut ||= !this.#texts.has(text);
  }

  list(): readonly string[] {
    const sorted = [...this.#texts].sort();
    return this.#isCut ? [...sorted, "and more"] : sorted;
  }
}
