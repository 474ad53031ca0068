import type { Cost } from "../harness.ts";

/** What is counted: records of acquires that take one of each of two limits. */
export interface Case {
  readonly id: "hot" | "many";
  readonly title: string;
  /** Each record is of the next entity, in turn. */
  readonly entities: number;
  readonly batch: number;
}

/** An aggregator that takes part. */
export interface Contestant {
  readonly id: "ours-lean" | "ours-sdk" | "original";
  readonly name: string;
  enter(race: Case): Promise<Entry>;
  close(): Promise<void>;
}

/** A contestant in a case. */
export interface Entry {
  /** Counts so many records; making them is not measured. */
  run(records: number): Promise<Cost>;
  /** What so many records cost in requests and units. */
  bill(records: number): Promise<WriteBill>;
}

/** What was sent to the table. */
export interface WriteBill {
  readonly requests: number;
  readonly writeUnits: number;
}
