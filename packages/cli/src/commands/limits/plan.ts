import type { Command } from "commander";
import { planText } from "../../output/plan.ts";
import type { Session } from "../support/session.ts";
import { addComparison } from "./planned.ts";

/** Adds `limits plan`. */
export function addPlanCommand(limits: Command, session: Session): void {
  addComparison(limits, session, {
    usage: "plan",
    summary:
      "Shows what limits apply would do, level by level. Exits 3 if anything would change, and " +
      "changes nothing itself.",
    examples: ["limits plan -f limits.yaml", "limits plan -f limits/ --json"],
    text: planText,
  });
}
