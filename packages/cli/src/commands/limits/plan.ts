import type { Command } from "commander";
import type { Session } from "../support/session.ts";
import { addVerb } from "../support/verb.ts";

/** Adds `limits plan`. */
export function addPlanCommand(limits: Command, session: Session): void {
  addVerb(limits, { usage: "plan", summary: "Not built yet.", examples: ["limits plan"] }).action(
    () => {
      throw new Error(`not built yet: ${String(session)}`);
    },
  );
}
