import type { Cost } from "../../harness.ts";
import type { Bill } from "../bill.ts";
import type { Case } from "../cases.ts";

/** Who is compared. */
export type ContestantId =
  | "floor-sdk"
  | "floor-lean"
  | "ours-sdk"
  | "ours-lean"
  | "quotas-sdk"
  | "quotas-lean"
  | "ours-sdk-unshared"
  | "ours-lean-unshared"
  | "peer-single"
  | "peer-union"
  | "peer-two-calls"
  | "peer-blocking"
  | "original";

/** A limiter that takes part in some of the cases. */
export interface Contestant {
  readonly id: ContestantId;
  readonly name: string;
  /**
   * Prepares for a case, unmeasured: everything that the first call of an entity costs is paid
   * here. Absent: no such case.
   */
  enter(race: Case): Promise<Entry | undefined>;
  close(): Promise<void>;
}

/** A contestant in a case. */
export interface Entry {
  /** Does the operations; a contestant in another process returns its cost there. */
  run(operations: number): Promise<Cost | void>;
  bill(operations: number): Promise<Bill>;
}
