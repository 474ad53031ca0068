import type { Command } from "commander";
import { jsonText } from "../../output/json.ts";
import { writeOutput, type OutputFlags } from "../support/new-file.ts";
import type { Session } from "../support/session.ts";
import { addVerb } from "../support/verb.ts";

/** Adds `cfn-template`. */
export function addCfnTemplateCommand(program: Command, session: Session): void {
  addVerb(program, {
    usage: "cfn-template",
    summary:
      "Prints the CloudFormation template of a stack, for those who deploy it themselves. It is " +
      "the same for all stacks: what differs is a parameter.",
    examples: ["cfn-template > template.yaml", "cfn-template --json"],
  })
    .option("-o, --output <file>", "Write it to a file.")
    .option("-f, --force", "Overwrite the file.")
    .action(async (flags: OutputFlags, command: Command) => {
      const { stackTemplate, templateYaml } = await import("@zae-limiter/infra");
      const screen = session.screen(command);
      const text = screen.json ? jsonText(stackTemplate()) : templateYaml();
      await writeOutput(text, flags, { session, command });
    });
}
