import { ApplyConflictError, type ProvisionerState } from "zae-limiter";
import type { Guard, ProvisionerStore } from "zae-limiter/backend";

/** What declared limits manage, with the revision that guarded writes depend on. */
export class MapProvisioner implements ProvisionerStore {
  #state: ProvisionerState | undefined;

  get(): ProvisionerState | undefined {
    return structuredClone(this.#state);
  }

  put(state: ProvisionerState, expected: number): boolean {
    if ((this.#state?.revision ?? 0) !== expected) return false;
    this.#state = structuredClone(state);
    return true;
  }

  /** Throws unless a guarded write may be made now. */
  check({ ifRevision }: Guard): void {
    if (ifRevision !== undefined && ifRevision !== (this.#state?.revision ?? 0))
      throw new ApplyConflictError(ifRevision);
  }
}
