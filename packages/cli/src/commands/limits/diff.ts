import type { Command } from "commander";
import type { Session } from "../support/session.ts";
import { addVerb } from "../support/verb.ts";

/** Adds `limits diff`. */
export function addDiffCommand(limits: Command, session: Session): void {
  addVerb(limits, { usage: "diff", summary: "Not built yet.", examples: ["limits diff"] }).action(
    () => {
      throw new Error(`not built yet: ${String(session)}`);
    },
  );
}
