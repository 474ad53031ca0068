import type { Command } from "commander";
import { fieldsText } from "../../output/table.ts";
import type { Session } from "../support/session.ts";
import { addVerb } from "../support/verb.ts";
import { checkVersions } from "../support/versions.ts";

/** Adds `version`. */
export function addVersionCommand(program: Command, session: Session): void {
  addVerb(program, {
    usage: "version",
    summary:
      "Shows the versions of this client and of a repository, or of a stack's table and Lambda.",
    examples: ["version --stack limits", "version --json"],
  }).action(async (_options: object, command: Command) => {
    const { clientVersion, schemaVersion, lambdaVersion, clientMinVersion } = await checkVersions(
      session,
      command,
    );
    const isStackless = session.findStacklessUrl(command) !== undefined;
    const screen = session.screen(command);
    screen.show({ clientVersion, schemaVersion, lambdaVersion, clientMinVersion }, () =>
      fieldsText(
        [
          ["Client", clientVersion],
          ["Schema", schemaVersion ?? "none"],
          ["Lambda", lambdaVersion ?? (isStackless ? "none: nothing is deployed" : "none")],
          ["Minimum client", clientMinVersion ?? "none"],
        ],
        screen.colours,
      ),
    );
  });
}
