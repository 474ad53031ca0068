import type { Command } from "commander";
import type { Session } from "../support/session.ts";

/** Adds `upgrade`. */
export function addUpgradeCommand(_program: Command, _session: Session): void {}
