import type { Command } from "commander";
import type { Session } from "../support/session.ts";

/** Adds `delete`. */
export function addDeleteCommand(_program: Command, _session: Session): void {}
