import { ValidationError } from "./errors.ts";

/**
 * The names of the options of a type. The compiler reports a missing name, even of an option that
 * is added to the type later.
 */
export function optionNames<Options>(
  names: Readonly<Record<keyof Options & string, true>>,
): ReadonlySet<string> {
  return new Set(Object.keys(names));
}

/**
 * Throws for options that are not an object, and for an unknown option: it is probably a
 * typing mistake, and would silently have no effect. `owner` is what has the options.
 */
export function checkOptions(options: unknown, known: ReadonlySet<string>, owner: string): void {
  if (typeof options !== "object" || options === null || Symbol.iterator in options)
    throw new ValidationError("options", options, `must be an object of options of ${owner}`);
  for (const name in options)
    if (!known.has(name)) throw buildUnknownOptionError(name, known, owner);
}

/** Whether a value has a method. Users may pass anything where an object is expected. */
export function hasMethod(value: unknown, name: string): boolean {
  return typeof (value as Readonly<Record<string, unknown>> | null)?.[name] === "function";
}

/** The error about an unknown option. It names the nearest one, or all of them. */
export function buildUnknownOptionError(
  name: string,
  known: ReadonlySet<string>,
  owner: string,
): ValidationError {
  const meant = nearest(name, known);
  const hint =
    meant === undefined ? `known are ${[...known].join(", ")}` : `did you mean ${meant}?`;
  return new ValidationError(name, name, `is not an option of ${owner}; ${hint}`);
}

/** Shorter words begin too many names. */
const SHORTEST_BEGINNING = 3;

/** Longer words are not typos, and comparing them takes long. */
const LONGEST_WORD = 100;

/**
 * The name that a word most likely stands for: at most a third of the word differs, or one begins
 * with the other, as `endpoint` and `endpointUrl`. Upper and lower case count as equal, and so do
 * `entity_id` and `entityId`. The command line has a function of its own for words that are data:
 * sharing this one would make it public.
 */
export function nearest(word: string, names: Iterable<string>): string | undefined {
  if (word.length > LONGEST_WORD) return undefined;
  const wanted = plain(word);
  const most = Math.max(1, Math.floor(wanted.length / 3));
  const ranked = [...names].map((name) => ({ name, distance: editDistance(wanted, plain(name)) }));
  const [best] = ranked.sort((left, right) => left.distance - right.distance);
  if (best !== undefined && best.distance <= most) return best.name;
  if (wanted.length < SHORTEST_BEGINNING) return undefined;
  return ranked.find(({ name }) => plain(name).startsWith(wanted))?.name;
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
}

/** How many letters have to be inserted, deleted or replaced to make one word the other. */
function editDistance(left: string, right: string): number {
  let last = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (const [row, letter] of [...left].entries()) {
    const current = [row + 1];
    for (let column = 0; column < right.length; column += 1) {
      const replaced = last[column]! + (letter === right[column] ? 0 : 1);
      current.push(Math.min(replaced, last[column + 1]! + 1, current[column]! + 1));
    }
    last = current;
  }
  return last.at(-1)!;
}
