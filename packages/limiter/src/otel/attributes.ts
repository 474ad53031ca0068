import { ZaeLimiterError } from "../core/errors.ts";

/** The attribute keys of metrics, spans and events. No metric has `entityId`. */
export const KEYS = {
  namespace: "zae_limiter.namespace",
  resource: "zae_limiter.resource",
  limit: "zae_limiter.limit",
  kind: "zae_limiter.kind",
  level: "zae_limiter.level",
  of: "zae_limiter.of",
  outcome: "zae_limiter.outcome",
  how: "zae_limiter.how",
  retryAfter: "zae_limiter.retry_after",
  waited: "zae_limiter.waited",
  extending: "zae_limiter.extending",
  entityId: "zae_limiter.entity.id",
  errorType: "error.type",
} as const;

/** Stands for all resources beyond the first ones, as every series costs memory and money. */
const OTHER = "other";

/** Most resources that metrics distinguish. */
const MAX_RESOURCES = 200;

/** The resources that metrics distinguish: the first ones that were used. */
export class ResourceNames {
  readonly #known = new Set<string>();

  /** The resource, or `other` if there are too many. */
  toLabel(resource: string): string {
    if (this.#known.has(resource)) return resource;
    if (this.#known.size >= MAX_RESOURCES) return OTHER;
    this.#known.add(resource);
    return resource;
  }
}

/** The names that platforms give to the errors of signals; their class is the same for all. */
const SIGNAL_ERRORS: ReadonlySet<string> = new Set(["AbortError", "TimeoutError"]);

/** The conventions of OpenTelemetry use this for an error of unknown kind. */
const UNKNOWN_ERROR = "_OTHER";

/**
 * The kind of an error: its code or its class. Texts of the application, such as messages or the
 * reason of a signal, may contain the id of an entity.
 */
export function errorType(error: unknown): string {
  if (error instanceof ZaeLimiterError) return error.code;
  if (!(error instanceof Error)) return UNKNOWN_ERROR;
  // A class may have no name.
  return SIGNAL_ERRORS.has(error.name) ? error.name : error.constructor.name || UNKNOWN_ERROR;
}
