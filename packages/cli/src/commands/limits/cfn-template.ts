import type { Command } from "commander";
import type { Session } from "../support/session.ts";
import { addVerb } from "../support/verb.ts";

/** Adds `limits cfn-template`. */
export function addLimitsTemplateCommand(limits: Command, session: Session): void {
  addVerb(limits, {
    usage: "cfn-template",
    summary: "Not built yet.",
    examples: ["limits cfn-template"],
  }).action(() => {
    throw new Error(`not built yet: ${String(session)}`);
  });
}
