import type { Repository } from "zae-limiter";
import { applyLimits, type Manifest } from "zae-limiter/manifest";
import { faultyRepository } from "zae-limiter/testing";
import { pausedRepository } from "../support/paused-repository.ts";

/** How an apply ends early: a request is lost, its answer is lost, or the process dies. */
export const INTERRUPTIONS = ["error-before", "error-after", "gone"] as const;

export interface Interruption {
  readonly kind: (typeof INTERRUPTIONS)[number];
  /** At which operation of the repository, counted from 1. */
  readonly at: number;
  /** Whether only writes are counted. @default all operations */
  readonly ofWrites?: boolean;
}

/**
 * Applies until it is applyInterrupted. Returns what the state says then: nothing of the apply
 * (also if the apply has restored the state), that it has started, or that it is over.
 */
export async function applyInterrupted(
  repository: Repository,
  manifest: Manifest,
  { kind, at, ofWrites = false }: Interruption,
): Promise<"nothing" | "begun" | "over"> {
  let operations = 0;
  let puts = 0;
  let cutOff = "";
  const cut = new AbortController();
  const isCut = (operation: string): boolean => {
    if (ofWrites && operation.startsWith("get")) return false;
    operations += 1;
    if (operations === at) cutOff = operation;
    const reachesStore = operations !== at || kind === "error-after";
    if (operation === "putProvisionerState" && reachesStore) puts += 1;
    return operations === at;
  };
  const breaking =
    kind === "gone"
      ? pausedRepository(repository, (operation) => {
          if (!isCut(operation)) return undefined;
          cut.abort();
          return new Promise(() => {});
        })
      : faultyRepository(repository, (operation) => (isCut(operation) ? kind : undefined));
  const gone = new Promise<void>((resolve) =>
    cut.signal.addEventListener("abort", () => resolve()),
  );
  const ended = applyLimits(breaking, manifest).then(
    () => true,
    () => false,
  );
  if ((await Promise.race([ended, gone])) === true) return "over";
  if (puts < 2) return puts === 0 ? "nothing" : "begun";
  return cutOff === "putProvisionerState" ? "over" : "nothing";
}
