import type { StackPlace } from "../aws/place.ts";

/** What can be seen of a stack; its parts are undefined where it has none, or may not be seen. */
export interface StackStatus {
  readonly stack: string;
  readonly stackStatus: string | undefined;
}

/** Looks at a stack and everything in it. Changes nothing. */
export async function stackStatus(_place: StackPlace = {}): Promise<StackStatus> {
  throw new Error("not built yet");
}
