import type { AcquireRequest, Lease } from "zae-limiter";
import type { Client } from "./client.ts";
import { BrokenPromise, type Call } from "../oracle/oracle.ts";
import type { OracleLease } from "../oracle/oracle-lease.ts";

/** An open lease, with what the oracle knows of it. */
export interface HeldLease {
  readonly client: Client;
  readonly lease: Lease;
  readonly oracleLease: OracleLease;
  readonly resources: readonly string[];
  /** The limits that the call brought along; what the lease takes later is decided by them too. */
  readonly override: Call["override"];
  /** By resource: the limits that any level had when the lease was granted. */
  readonly known: ReadonlyMap<string, readonly string[]>;
  tookMore: boolean;
}

/** The last call that was refused, to be tried again. */
export interface RefusedCall {
  readonly client: number;
  readonly request: AcquireRequest;
  readonly call: Call;
  readonly stepNumber: number;
  readonly fitsAtMs: number;
}

/** Compares what a lease says that was consumed. */
export function compareConsumed({ lease, oracleLease, resources }: HeldLease): void {
  for (const resource of resources) {
    const { consumed, unlimited } = lease.resourceLease(resource);
    const expected = oracleLease.unlimited(resource);
    if (unlimited.toSorted().join() !== expected.toSorted().join())
      throw new BrokenPromise(
        `the lease shows ${unlimited.join(", ")} without limit, and must show ${expected.join(", ")}`,
      );
    for (const name of oracleLease.names(resource)) {
      if (consumed[name] !== oracleLease.total(resource, name))
        throw new BrokenPromise(
          `the lease shows ${consumed[name]} ${name} consumed, and must show ${oracleLease.total(resource, name)}`,
        );
    }
  }
}
