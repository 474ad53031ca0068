import { ValidationError } from "../../../core/errors.ts";

/**
 * Returns the name of a region, or throws. It becomes part of the address that signed requests are
 * sent to, so it must not be able to name another one.
 */
export function checkRegion(value: unknown): string {
  if (typeof value === "string" && /^[a-z0-9-]{1,63}$/.test(value)) return value;
  throw new ValidationError(
    "region",
    value,
    "must contain only small letters, digits and -, such as eu-west-1",
  );
}

/** The error when nothing names a region. `cause` was thrown by the search for one. */
export function buildMissingRegionError(cause: unknown): ValidationError {
  const found = cause instanceof Error ? cause.message : String(cause);
  const why = /^region is missing$/i.test(found) ? "" : ` (${found})`;
  return new ValidationError(
    "region",
    undefined,
    `none was found${why}: set AWS_REGION, pass the option region, name it in the URL, as in dynamodb://eu-west-1/my-stack, or pass --region to the command line`,
    "ERR_LIMITER_NO_REGION",
  );
}
