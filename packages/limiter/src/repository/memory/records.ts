import { ApplyConflictError } from "../../core/errors.ts";
import type { ProvisionerState, VersionRecord } from "../repository.ts";
import type { Guard, ProvisionerStore, VersionStore } from "../store.ts";

/** What declared limits manage in a namespace. */
export class MemoryProvisioner implements ProvisionerStore {
  #state: ProvisionerState | undefined;

  /** Returns a copy, as other stores do, so that callers cannot change what is stored. */
  get(): ProvisionerState | undefined {
    return structuredClone(this.#state);
  }

  put(state: ProvisionerState, expected: number): boolean {
    if (this.#revision() !== expected) return false;
    this.#state = structuredClone(state);
    return true;
  }

  /** Throws unless a guarded write may be made now. */
  check({ ifRevision }: Guard): void {
    if (ifRevision !== undefined && ifRevision !== this.#revision())
      throw new ApplyConflictError(ifRevision);
  }

  #revision(): number {
    return this.#state?.revision ?? 0;
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
