import type { Command } from "commander";
import type { Session } from "../support/session.ts";

/** Adds `version`. */
export function addVersionCommand(_program: Command, _session: Session): void {}
