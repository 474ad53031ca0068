import type { Command } from "commander";
import type { LimitsTemplate } from "@zae-limiter/infra/manifest";
import { UsageError } from "../../exit.ts";
import { jsonText } from "../../output/json.ts";
import { numberText } from "../../output/text.ts";
import { writeOutput, type OutputFlags } from "../support/new-file.ts";
import type { Session } from "../support/session.ts";
import { addVerb } from "../support/verb.ts";
import { fileOption, type FileOptions } from "./manifest-files.ts";
import { readGivenManifest } from "./planned.ts";

/** Adds `limits cfn-template`. */
export function addLimitsTemplateCommand(limits: Command, session: Session): void {
  addVerb(limits, {
    usage: "cfn-template",
    summary:
      "Prints a CloudFormation template that declares the limits of a manifest. Deploying it " +
      "applies them, by the provisioner of the stack that --stack names.",
    examples: [
      "limits cfn-template -f limits.yaml --stack my-stack > template.yaml",
      "limits cfn-template -f limits/ --json",
    ],
  })
    .addOption(fileOption())
    .option("-o, --output <file>", "Write it to a file.")
    .option("--force", "Overwrite the file.")
    .action(async (flags: FileOptions & OutputFlags, command: Command) => {
      const screen = session.screen(command);
      const manifest = await readGivenManifest(session, command, flags.file);
      const { limitsTemplate, manifestYaml } = await import("@zae-limiter/infra/manifest");
      const template = limitsTemplate(manifest, session.getStackPlace(command));
      const text = screen.json ? jsonText(template) : manifestYaml(template);
      for (const notice of sizeNotices(template, Buffer.byteLength(text))) screen.notice(notice);
      await writeOutput(text, flags, { session, command });
    });
}

/** The longest template that CloudFormation accepts: from a bucket, and in a request. */
const MOST_BYTES = 1_048_576;
const MOST_BYTES_IN_REQUEST = 51_200;

/** The largest asynchronous event that every region accepts; newer ones accept more. */
const MOST_BYTES_IN_EVENT = 262_144;

/** The notes on a large template. Throws for one that cannot be deployed. */
function sizeNotices({ Resources }: LimitsTemplate, bytes: number): readonly string[] {
  if (bytes > MOST_BYTES)
    throw new UsageError(
      `The template would have ${numberText(bytes)} bytes, and CloudFormation takes ` +
        `${numberText(MOST_BYTES)}. Apply this many limits with zae-limiter limits apply.`,
    );
  const isForBucket = bytes > MOST_BYTES_IN_REQUEST;
  // An update sends the old and the new properties.
  const eventBytes = 2 * Buffer.byteLength(JSON.stringify(Resources.Limits.Properties));
  return [
    ...(isForBucket
      ? [
          `note: CloudFormation takes ${numberText(MOST_BYTES_IN_REQUEST)} bytes in a request, and ` +
            `the template has ${numberText(bytes)}. Deploy it from a bucket.`,
        ]
      : []),
    ...(eventBytes > MOST_BYTES_IN_EVENT
      ? [
          `note: An update would send ${numberText(eventBytes)} bytes to the function, and Lambda ` +
            `may take only ${numberText(MOST_BYTES_IN_EVENT)}. zae-limiter limits apply has no limit.`,
        ]
      : []),
  ];
}
