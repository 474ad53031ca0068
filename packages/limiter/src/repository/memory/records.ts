import type { ProvisionerState, VersionRecord } from "../repository.ts";
import type { ProvisionerStore, VersionStore } from "../store.ts";

/** The state of declared limits. */
export class MemoryProvisioner implements ProvisionerStore {
  #state: ProvisionerState | undefined;

  /** A copy, as any other store would give: what a caller does with it stays with the caller. */
  get(): ProvisionerState | undefined {
    return structuredClone(this.#state);
  }

  put(state: ProvisionerState, expected: number): boolean {
    if ((this.#state?.revision ?? 0) !== expected) return false;
    this.#state = structuredClone(state);
    return true;
  }

  clear(): number {
    const count = this.#state === undefined ? 0 : 1;
    this.#state = undefined;
    return count;
  }
}

/** The versions that wrote the stored data. */
export class MemoryVersions implements VersionStore {
  #record: VersionRecord | undefined;

  get(): VersionRecord | undefined {
    return structuredClone(this.#record);
  }

  put(record: VersionRecord): void {
    this.#record = record;
  }
}
