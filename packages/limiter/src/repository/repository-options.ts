import { ValidationError } from "../core/errors.ts";
import { optionNames } from "../core/options.ts";
import type { RepositoryOptions } from "./repository.ts";

const DEFAULT_CACHE_TTL_MS = 60_000;

/** The options that every backend has. */
export const REPOSITORY_OPTIONS: Readonly<Record<keyof RepositoryOptions, true>> = {
  namespace: true,
  configCacheTtlMs: true,
  clock: true,
  random: true,
  create: true,
  principal: true,
  recordUsage: true,
};

/** The names of these options. */
export const REPOSITORY_NAMES = optionNames<RepositoryOptions>(REPOSITORY_OPTIONS);

/**
 * The error of a constructor that only `open` may call. The argument is the call to use instead.
 */
export function buildConstructorError(name: string, open: string): ValidationError {
  return new ValidationError("call", undefined, `new ${name}(…) opens nothing; use ${open}`);
}

/** How long stored limits are remembered. Throws when the option is not a duration. */
export function cacheTtlMs({ configCacheTtlMs: value }: RepositoryOptions): number {
  if (value === undefined) return DEFAULT_CACHE_TTL_MS;
  if (typeof value === "number" && value >= 0 && Number.isFinite(value)) return value;
  throw new ValidationError("configCacheTtlMs", value, "must be 0 or more milliseconds");
}

/**
 * Whether usage is recorded. Throws when the option is not a boolean: the text "false" of an
 * environment variable would count as true.
 */
export function recordsUsage({ recordUsage = true }: RepositoryOptions): boolean {
  if (typeof recordUsage === "boolean") return recordUsage;
  throw new ValidationError("recordUsage", recordUsage, "must be true or false");
}
