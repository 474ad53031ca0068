import type { Repository } from "../../repository/repository.ts";

/**
 * A store that decides at once, but whose answers to `consume` are held up from `hold` until
 * `release`.
 */
export interface DelayedOutcomes {
  readonly repository: Repository;
  hold(): void;
  release(): void;
}

/** Puts a way between a repository's decisions and their answers. */
export function delayedOutcomes(inner: Repository): DelayedOutcomes {
  let gate: AbortController | undefined;
  const repository = new Proxy(inner, {
    get(target, property) {
      if (property !== "consume") return Reflect.get(target, property, target) as unknown;
      return async (...values: Parameters<Repository["consume"]>) => {
        const answer = await target.consume(...values);
        if (gate !== undefined) await opened(gate.signal);
        return answer;
      };
    },
  });
  return { repository, hold: () => (gate = new AbortController()), release: () => gate?.abort() };
}

function opened(gate: AbortSignal): Promise<void> {
  return new Promise((resolve) =>
    gate.aborted ? resolve() : gate.addEventListener("abort", () => resolve(), { once: true }),
  );
}
