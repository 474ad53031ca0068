import { ValidationError } from "../core/errors.ts";

/** Throws if this is no repository, and says which mistake it looks like. */
export function checkRepository(options: { readonly repository?: unknown } | undefined): void {
  const repository = options?.repository;
  if (hasMethod(repository, "consume")) return;
  let reason = "must be a repository, such as new MemoryRepository()";
  if (hasMethod(repository, "then"))
    reason = "is a Promise: await it, as in repository: await SqliteRepository.open(path)";
  else if (hasMethod(options, "consume") || hasMethod(options, "then"))
    reason = "must be passed in an object: new RateLimiter({ repository })";
  throw new ValidationError("repository", repository, reason);
}

function hasMethod(value: unknown, name: string): boolean {
  return typeof (value as Readonly<Record<string, unknown>> | undefined)?.[name] === "function";
}
