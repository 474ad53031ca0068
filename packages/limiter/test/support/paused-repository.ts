import type { Repository } from "zae-limiter";

/**
 * A repository whose operations wait for `before`, which gets their names. One that never resolves
 * stands for a process that died.
 */
export function pausedRepository(
  repository: Repository,
  before: (operation: string) => Promise<void> | undefined,
): Repository {
  return new Proxy(repository, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property, target);
      if (typeof member !== "function") return member;
      return async (...values: unknown[]) => {
        await before(String(property));
        return Reflect.apply(member, target, values) as unknown;
      };
    },
  });
}
