import type { Command } from "commander";
import type { Session } from "../support/session.ts";

/** Adds `check`. */
export function addCheckCommand(_program: Command, _session: Session): void {}
