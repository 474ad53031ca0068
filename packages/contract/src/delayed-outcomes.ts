import type { Repository } from "zae-limiter";

/**
 * A store that decides at once, but whose outcomes of `consume` are held from `hold` to `release`.
 */
export interface DelayedOutcomes {
  readonly repository: Repository;
  hold(): void;
  release(): void;
}

/** Wraps a repository so that the outcomes of its decisions can be delayed. */
export function delayedOutcomes(inner: Repository): DelayedOutcomes {
  let gate: AbortController | undefined;
  const repository = new Proxy(inner, {
    get(target, property) {
      if (property !== "consume") return Reflect.get(target, property, target) as unknown;
      return async (...values: Parameters<Repository["consume"]>) => {
        const answer = await target.consume(...values);
        if (gate !== undefined) await open(gate.signal);
        return answer;
      };
    },
  });
  return { repository, hold: () => (gate = new AbortController()), release: () => gate?.abort() };
}

function open(gate: AbortSignal): Promise<void> {
  return new Promise((resolve) =>
    gate.aborted ? resolve() : gate.addEventListener("abort", () => resolve(), { once: true }),
  );
}
