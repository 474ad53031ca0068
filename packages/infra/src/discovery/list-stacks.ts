import type { StackPlace } from "../aws/place.ts";

/** A stack of zae-limiter. */
export interface StackSummary {
  readonly stack: string;
  readonly status: string;
  readonly version: string | undefined;
  readonly lambdaVersion: string | undefined;
  readonly schemaVersion: string | undefined;
  readonly createdAt: Date | undefined;
  readonly updatedAt: Date | undefined;
}

/** All stacks of zae-limiter in a region. */
export async function listStacks(
  _place: Omit<StackPlace, "stack"> = {},
): Promise<readonly StackSummary[]> {
  throw new Error("not built yet");
}
