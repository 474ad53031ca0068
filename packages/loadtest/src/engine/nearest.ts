import { ValidationError } from "zae-limiter";

/** The error about an unknown name. It suggests the nearest one, or lists all. */
export function buildUnknownNameError(
  field: string,
  name: string,
  known: readonly string[],
): ValidationError {
  const meant = findNearest(name, known);
  const hint =
    meant === undefined ? `known are ${known.join(", ") || "none"}` : `did you mean ${meant}?`;
  return new ValidationError(field, name, `is not known; ${hint}`);
}

/** The name that differs from the word in at most a third of its letters. */
function findNearest(word: string, names: readonly string[]): string | undefined {
  const most = Math.max(1, Math.floor(word.length / 3));
  const ranked = names
    .map((name) => ({ name, distance: countEdits(word.slice(0, 100), name) }))
    .toSorted((one, other) => one.distance - other.distance);
  const [best] = ranked;
  return best !== undefined && best.distance <= most ? best.name : undefined;
}

function countEdits(left: string, right: string): number {
  let last = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (const [row, letter] of [...left.toLowerCase()].entries()) {
    const current = [row + 1];
    for (let column = 0; column < right.length; column += 1) {
      const replaced = last[column]! + (letter === right[column]!.toLowerCase() ? 0 : 1);
      current.push(Math.min(replaced, last[column + 1]! + 1, current[column]! + 1));
    }
    last = current;
  }
  return last.at(-1)!;
}
