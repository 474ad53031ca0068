import type { Command } from "commander";
import type { Session } from "../support/session.ts";

/** Adds `deploy`. */
export function addDeployCommand(_program: Command, _session: Session): void {}
