import type { Command } from "commander";
import type { Session } from "../support/session.ts";

/** Adds `list`. */
export function addListCommand(_program: Command, _session: Session): void {}
