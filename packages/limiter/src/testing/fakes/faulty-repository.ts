import { RateLimiterUnavailable } from "../../core/errors.ts";
import type { Repository } from "../../repository/repository.ts";

/**
 * What goes wrong with an operation: it never reaches the store, its response is lost, or it is
 * delayed.
 */
export type Fault =
  | "error-before"
  | "error-after"
  | {
      /** How long it is delayed, by the repository's clock. */
      readonly delayMs: number;
    };

/** Methods that return what this process knows, and send nothing that could fail. */
const LOCAL: ReadonlySet<PropertyKey> = new Set([
  "getCacheStats",
  "getStatistics",
  "knowsLimit",
  "remembered",
]);

/**
 * Wraps a repository so that its operations fail as `next` decides, including those of repositories
 * made with `namespace()`. A failure is a `RateLimiterUnavailable`, as when a store cannot be
 * reached.
 *
 * @example
 * const flaky = faultyRepository(repository, (operation) =>
 *   operation === "settle" ? "error-after" : undefined,
 * );
 */
export function faultyRepository(
  repository: Repository,
  next: (operation: string) => Fault | undefined,
): Repository {
  return new Proxy(repository, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property, target);
      if (typeof member !== "function") return member;
      if (typeof property === "symbol" || LOCAL.has(property))
        return (...values: unknown[]): unknown => Reflect.apply(member, target, values);
      const call = (values: unknown[]): unknown => Reflect.apply(member, target, values);
      if (property === "namespace")
        return async (...values: unknown[]) =>
          faultyRepository(
            (await withFault(target, property, next(property), () => call(values))) as Repository,
            next,
          );
      return (...values: unknown[]) =>
        withFault(target, property, next(property), () => call(values));
    },
  });
}

function withFault(
  repository: Repository,
  operation: string,
  fault: Fault | undefined,
  call: () => unknown,
): unknown {
  if (fault === undefined) return call();
  if (fault === "error-before")
    return Promise.reject(buildLostError(operation, "did not reach the store"));
  if (fault === "error-after") {
    return Promise.resolve(call()).then(() => {
      throw buildLostError(operation, "was carried out, but its response was lost");
    });
  }
  return repository.clock.sleep(fault.delayMs).then(call);
}

function buildLostError(operation: string, what: string): RateLimiterUnavailable {
  return new RateLimiterUnavailable(`Injected fault: ${operation} ${what}.`);
}
