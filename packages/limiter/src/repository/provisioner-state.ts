import type { PendingApply, ProvisionerState } from "./models.ts";

/** The state of declared limits as stores keep it, which have no type for a Date: as JSON. */
export function formatState(state: ProvisionerState): string {
  return JSON.stringify(state);
}

/** Parses a text of `formatState`. */
export function parseState(text: string): ProvisionerState {
  const { pending, lastApplied, appliedHash, ...rest } = JSON.parse(text) as StoredState;
  return {
    ...rest,
    lastApplied: lastApplied === undefined ? undefined : new Date(lastApplied),
    appliedHash,
    ...(pending !== undefined && {
      pending: { ...pending, startedAt: new Date(pending.startedAt) },
    }),
  };
}

interface StoredState extends Omit<ProvisionerState, "lastApplied" | "pending"> {
  readonly lastApplied?: string;
  readonly pending?: Omit<PendingApply, "startedAt"> & { readonly startedAt: string };
}
