import type { Command } from "commander";
import { EXIT } from "../../exit.ts";
import { printable } from "../../output/text.ts";
import type { Session } from "../support/session.ts";
import { addVerb } from "../support/verb.ts";
import { checkVersions } from "../support/versions.ts";

/** Adds `check`. */
export function addCheckCommand(program: Command, session: Session): void {
  addVerb(program, {
    usage: "check",
    summary:
      "Tells whether this client can use a repository or the table of a stack, and what to do if not. " +
      "Changes nothing. Exits 1 when it cannot.",
    examples: ["check --stack limits", "check --json"],
  }).action(async (_options: object, command: Command) => {
    const check = await checkVersions(session, command);
    session.screen(command).show(check, () => `${printable(check.message)}\n`);
    session.exitWith(check.state === "compatible" ? EXIT.done : EXIT.failed);
  });
}
