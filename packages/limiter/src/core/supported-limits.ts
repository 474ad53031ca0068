import { IncompatibleSchemaError, ValidationError } from "./errors.ts";
import type { AnyLimit, LimitKind, QuotaLimit, RateLimit, SessionLimit } from "./limit-kinds.ts";
import { checkLimits, Limit } from "./limit.ts";
import { VERSION } from "./version.ts";

type Option = Exclude<keyof QuotaLimit, "name" | "kind" | "capacity" | "resets">;

/**
 * The kinds and options of limits that every store decides. The others can be written, parsed and
 * compared, but neither stored nor passed to a call.
 */
const SUPPORTED: {
  readonly kinds: Readonly<Record<LimitKind, boolean>>;
  readonly options: Readonly<Record<Option, boolean>>;
} = {
  kinds: { rate: true, quota: true, session: true, inflight: false },
  options: {
    counts: true,
    soft: false,
    schedule: false,
    reserve: true,
    alerts: false,
    carry: true,
  },
};

/** What stores decide: limits of the supported kinds. */
export type SupportedLimit = RateLimit | QuotaLimit | SessionLimit;

/** Returns frozen copies of limits that may be stored or passed to a call, or throws. */
export function checkSupportedLimits(
  limits: readonly Limit[],
  field = "limits",
): readonly SupportedLimit[] {
  const checked = checkLimits(limits, field);
  for (const limit of checked) {
    const unsupported = findUnsupported(limit);
    if (unsupported !== undefined)
      throw new ValidationError(
        `${limit.name}.${unsupported.field}`,
        unsupported.value,
        "is not supported yet; leave it out or use another kind of limit",
      );
  }
  return checked as readonly SupportedLimit[];
}

function findUnsupported(
  limit: AnyLimit,
): { readonly field: string; readonly value: unknown } | undefined {
  if (!SUPPORTED.kinds[limit.kind ?? "rate"]) return { field: "kind", value: limit.kind };
  const options = Object.keys(SUPPORTED.options) as Option[];
  const found = options.find((option) => option in limit && !SUPPORTED.options[option]);
  return found && { field: found, value: found };
}

/**
 * Parses a limit that a store keeps as text. It was valid when it was written, so what is wrong
 * with it is that this version, or the time zone data of this runtime, is older.
 */
export function parseStoredLimit(text: string): SupportedLimit {
  try {
    return checkSupportedLimits([Limit.parse(text)])[0]!;
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    const reason = error.field.endsWith(".zone")
      ? `is in a time zone that this runtime does not know (${error.value}). Upgrade Node.js.`
      : "means more than this version knows. Upgrade zae-limiter.";
    throw new IncompatibleSchemaError(`The stored limit ${text} ${reason}`, {
      clientVersion: VERSION,
      schemaVersion: "unknown",
    });
  }
}
