import type { BatchObservableCallback, Meter } from "@opentelemetry/api";
import type { RepositoryStatistics } from "../repository/models.ts";
import type { Repository } from "../repository/repository.ts";
import { KEYS } from "./attributes.ts";

/** The counters of stores: name, field of the statistics, and what is counted. */
const COUNTERS = [
  ["requests", "requests", "Requests sent to the store."],
  ["writes", "writes", "Writes to buckets that were applied."],
  ["failed_conditions", "failedConditions", "Writes that had to be decided again."],
  ["retries", "retries", "Requests that were sent again."],
  ["batches", "batches", "Writes that carried acquires or ends of leases."],
  ["refusals_from_memory", "refusalsFromMemory", "Calls that were refused without a request."],
  ["splits", "splits", "Shards that were split in two."],
] as const satisfies readonly (readonly [string, keyof RepositoryStatistics, string])[];

/**
 * Makes observable counters of the statistics of repositories. Returns a function that stops them.
 */
export function observeStores(meter: Meter, repositories: readonly Repository[]): () => void {
  if (repositories.length === 0) return () => {};
  const counters = COUNTERS.map(([name, field, description]) => ({
    field,
    counter: meter.createObservableCounter(`zae_limiter.store.${name}`, { description }),
  }));
  const observables = counters.map(({ counter }) => counter);
  const observe: BatchObservableCallback = (result) => {
    for (const [namespace, all] of byNamespace(repositories))
      for (const { field, counter } of counters)
        result.observe(counter, addUp(all, field), { [KEYS.namespace]: namespace });
  };
  meter.addBatchObservableCallback(observe, observables);
  return () => meter.removeBatchObservableCallback(observe, observables);
}

/** One series must not be observed twice, so repositories of one namespace are added up. */
function byNamespace(
  repositories: readonly Repository[],
): ReadonlyMap<string, readonly RepositoryStatistics[]> {
  const statistics = new Map<string, RepositoryStatistics[]>();
  for (const repository of new Set(repositories)) {
    const { namespaceName } = repository;
    const known = statistics.get(namespaceName) ?? [];
    statistics.set(namespaceName, [...known, repository.getStatistics()]);
  }
  return statistics;
}

function addUp(all: readonly RepositoryStatistics[], field: keyof RepositoryStatistics): number {
  return all.reduce((sum, statistics) => sum + statistics[field], 0);
}
