import { ValidationError } from "../core/errors.ts";
import { hasMethod } from "../core/options.ts";

/** Throws if the options of a limiter have no repository, and says which mistake it looks like. */
export function checkRepository(options: { readonly repository: unknown }): void {
  const repository: unknown = options?.repository;
  if (hasMethod(repository, "consume")) return;
  let reason = "must be a repository, such as new MemoryRepository()";
  if (hasMethod(repository, "then"))
    reason = "is a Promise: await it, as in repository: await SqliteRepository.open(path)";
  else if (hasMethod(options, "consume") || hasMethod(options, "then"))
    reason = "must be passed in an object: new RateLimiter({ repository })";
  throw new ValidationError("repository", repository, reason);
}

/** Throws if this is not a limiter: middlewares and stores need one. */
export function checkLimiter(limiter: unknown): void {
  if (!hasMethod(limiter, "tryAcquire"))
    throw new ValidationError(
      "limiter",
      limiter,
      "must be a RateLimiter, such as new RateLimiter({ repository })",
    );
}
