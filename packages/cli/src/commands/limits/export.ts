import type { Command } from "commander";
import type { Session } from "../support/session.ts";
import { addVerb } from "../support/verb.ts";

/** Adds `limits export`. */
export function addExportCommand(limits: Command, session: Session): void {
  addVerb(limits, {
    usage: "export",
    summary: "Not built yet.",
    examples: ["limits export"],
  }).action(() => {
    throw new Error(`not built yet: ${String(session)}`);
  });
}
