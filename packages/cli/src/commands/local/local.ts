import type { Command } from "commander";
import type { Session } from "../support/session.ts";

/** Adds `local`, which runs the whole system on this machine. */
export function addLocalCommands(_program: Command, _session: Session): void {}
