import type { Command } from "commander";
import { diffText } from "../../output/plan.ts";
import type { Session } from "../support/session.ts";
import { addComparison } from "./planned.ts";

/** Adds `limits diff`. */
export function addDiffCommand(limits: Command, session: Session): void {
  addComparison(limits, session, {
    usage: "diff",
    summary:
      "Compares files with what is stored, value by value, and marks what was changed by hand " +
      "since the last apply. Exits 3 if anything differs.",
    examples: ["limits diff -f limits.yaml"],
    text: diffText,
  });
}
