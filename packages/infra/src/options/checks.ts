import { ValidationError } from "zae-limiter";

/** Turns the value of an option into that of a parameter, or throws `ValidationError`. */
export type Check = (value: unknown, option: string) => string;

/** A number without a fraction, within a range. */
export function whole(least: number, most: number): Check {
  return (value, option) => {
    if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most)
      return String(value);
    throw new ValidationError(option, value, `must be a whole number from ${least} to ${most}`);
  };
}

/** One of some numbers. */
export function checkOneOf(numbers: readonly number[]): Check {
  return (value, option) => {
    if (numbers.includes(value as number)) return String(value);
    throw new ValidationError(option, value, `must be one of ${numbers.join(", ")}`);
  };
}

/** True or false. */
export const flag: Check = (value, option) => {
  if (typeof value === "boolean") return String(value);
  throw new ValidationError(option, value, "must be true or false");
};

/** One of some words, and what the template calls it. */
export function word(words: Readonly<Record<string, string>>): Check {
  return (value, option) => {
    if (typeof value === "string" && Object.hasOwn(words, value)) return words[value]!;
    const known = Object.keys(words).join(" or ");
    throw new ValidationError(option, value, `must be ${known}`);
  };
}

/** A list of at least one of some words, which become one text in their usual order. */
export function checkList(words: readonly string[]): Check {
  return (value, option) => {
    const given = Array.isArray(value) ? (value as readonly unknown[]) : [];
    const known = words.filter((each) => given.includes(each));
    if (known.length > 0 && given.every((each) => words.includes(each as string)))
      return known.join(",");
    throw new ValidationError(
      option,
      value,
      `must be a list of at least one of ${words.join(", ")}`,
    );
  };
}

/** A text of a certain form, or an empty one, which stands for none. */
export function text(pattern: string, expected: string): Check {
  const form = new RegExp(`^(${pattern})?$`);
  return (value, option) => {
    if (typeof value === "string" && form.test(value)) return value;
    throw new ValidationError(option, value, `must be ${expected}`);
  };
}
