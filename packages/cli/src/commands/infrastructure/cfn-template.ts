import type { Command } from "commander";
import type { Session } from "../support/session.ts";

/** Adds `cfn-template`. */
export function addCfnTemplateCommand(_program: Command, _session: Session): void {}
