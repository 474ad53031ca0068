import type { Command } from "commander";
import type { Session } from "../support/session.ts";

/** Adds `lambda-export`. */
export function addLambdaExportCommand(_program: Command, _session: Session): void {}
