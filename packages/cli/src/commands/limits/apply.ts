import type { Command } from "commander";
import type { Session } from "../support/session.ts";
import { addVerb } from "../support/verb.ts";

/** Adds `limits apply`. */
export function addApplyCommand(limits: Command, session: Session): void {
  addVerb(limits, { usage: "apply", summary: "Not built yet.", examples: ["limits apply"] }).action(
    () => {
      throw new Error(`not built yet: ${String(session)}`);
    },
  );
}
