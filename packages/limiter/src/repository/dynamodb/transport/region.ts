import { ValidationError } from "../../../core/errors.ts";

/**
 * Returns the name of a region, or throws. It becomes part of the address that signed requests are
 * sent to, so it must not be able to name another one.
 */
export function regionName(value: unknown): string {
  if (typeof value === "string" && /^[a-z0-9-]{1,63}$/.test(value)) return value;
  throw new ValidationError(
    "region",
    value,
    "must contain only small letters, digits and -, such as eu-west-1",
  );
}
