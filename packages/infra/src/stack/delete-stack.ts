import type { StackPlace } from "../aws/place.ts";
import type { StackEvent } from "./deploy-stack.ts";

/** Deletes a stack; the table and the archive are retained. It need not exist. */
export async function deleteStack(
  _options: StackPlace & {
    readonly onEvent?: (event: StackEvent) => void;
    readonly wait?: boolean;
  } = {},
): Promise<void> {
  throw new Error("not built yet");
}
