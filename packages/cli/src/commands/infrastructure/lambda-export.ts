import { Option, type Command } from "commander";
import { fieldsText } from "../../output/table.ts";
import { numberText } from "../../output/text.ts";
import { writeNewFile } from "../support/new-file.ts";
import type { Session } from "../support/session.ts";
import { addVerb } from "../support/verb.ts";

/** Adds `lambda-export`, which writes the code of a function for people who deploy by hand. */
export function addLambdaExportCommand(program: Command, session: Session): void {
  addVerb(program, {
    usage: "lambda-export",
    summary: "Writes the code of a Lambda function of the stack as a zip file.",
    examples: [
      "lambda-export --output aggregator.zip",
      "lambda-export --function provisioner --output provisioner.zip",
      "lambda-export --info",
      "lambda-export --info --json",
    ],
  })
    .addOption(
      new Option("--function <name>", "Whose code it is.")
        .choices(["aggregator", "provisioner"])
        .default("aggregator"),
    )
    .option("-o, --output <file>", "Where to write it.", "lambda.zip")
    .option("--info", "Only show what it is.")
    .option("-f, --force", "Overwrite the file.")
    .action(async (options: ExportOptions, command: Command) => {
      const { lambdaPackage } = await import("@zae-limiter/infra");
      const { name, content, sha256 } = await lambdaPackage(options.function);
      const screen = session.screen(command);
      const isWritten = options.info !== true;
      if (isWritten) await writeNewFile(options.output, content, options);
      const facts = { name, handler: "index.handler", bytes: content.length, sha256 };
      const shown = isWritten ? { ...facts, output: options.output } : facts;
      screen.show(shown, () =>
        isWritten
          ? `Wrote ${options.output}: ${numberText(content.length)} bytes, SHA-256 ${sha256}\n`
          : infoText(facts, screen.colours),
      );
    });
}

interface ExportOptions {
  readonly function: "aggregator" | "provisioner";
  readonly output: string;
  readonly info?: boolean;
  readonly force?: boolean;
}

function infoText(
  facts: {
    readonly name: string;
    readonly handler: string;
    readonly bytes: number;
    readonly sha256: string;
  },
  colours: Parameters<typeof fieldsText>[1],
): string {
  return fieldsText(
    [
      ["Function", facts.name],
      ["Handler", facts.handler],
      ["Bytes", facts.bytes],
      ["SHA-256", facts.sha256],
    ],
    colours,
  );
}
