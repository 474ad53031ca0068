import type { StackOptions } from "zae-limiter/dynamodb";
import type { StackPlace } from "../aws/place.ts";

/**
 * Deploys a stack that is missing, and waits for one that somebody else is creating. Never changes
 * one that exists.
 */
export async function ensureStack(
  _place: StackPlace,
  _stackOptions: StackOptions = {},
): Promise<void> {
  throw new Error("not built yet");
}
