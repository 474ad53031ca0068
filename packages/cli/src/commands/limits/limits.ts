import type { Command } from "commander";
import type { Session } from "../support/session.ts";
import { addNoun } from "../support/verb.ts";
import { addApplyCommand } from "./apply.ts";
import { addLimitsTemplateCommand } from "./cfn-template.ts";
import { addDiffCommand } from "./diff.ts";
import { addExportCommand } from "./export.ts";
import { addPlanCommand } from "./plan.ts";

/** Adds the verbs of `limits`: limits that files declare. */
export function addLimitsCommands(program: Command, session: Session): void {
  const limits = addNoun(
    program,
    "limits",
    "Limits that files declare: plan, diff, apply, export, cfn-template.",
  );
  addPlanCommand(limits, session);
  addDiffCommand(limits, session);
  addApplyCommand(limits, session);
  addExportCommand(limits, session);
  addLimitsTemplateCommand(limits, session);
}
