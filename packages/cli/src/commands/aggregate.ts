import type { Command } from "commander";
import type { AuditArchive, RunnerReport } from "zae-limiter/aggregator";
import { tableOptions } from "zae-limiter/open";
import type { Environment } from "../environment.ts";
import { UsageError } from "../exit.ts";
import type { Screen } from "../output/screen.ts";
import { fieldsText } from "../output/table.ts";
import { problemText, RunnerDisplay } from "./support/runner-display.ts";
import type { Session } from "./support/session.ts";
import { addVerb } from "./support/verb.ts";

/** Adds `aggregate`, which reads the stream of a DynamoDB table and sums up its usage. */
export function addAggregateCommand(program: Command, session: Session): void {
  addVerb(program, {
    usage: "aggregate",
    summary:
      "Reads the stream of a DynamoDB table and sums up its usage, until it is interrupted. " +
      "Use it where no Lambda function does this; of several, one works and the others stand by.",
    examples: [
      "aggregate --repository dynamodb://eu-west-1/my-stack --once",
      "aggregate --repository dynamodb://eu-west-1/my-stack --archive s3://my-bucket/audit",
    ],
  })
    .option("--once", "Exit when everything that the stream holds now is counted.")
    .option(
      "--archive <place>",
      "Where audit events go when they expire: a folder, or s3://bucket/prefix.",
    )
    .action(async (options: AggregateOptions, command: Command) => {
      const url = session.getUrl(command);
      if (!url.startsWith("dynamodb:"))
        throw new UsageError(
          "Only a DynamoDB table needs aggregate. Elsewhere, usage is recorded in the same " +
            "write as the call.",
        );
      const screen = session.screen(command);
      const report = await runAggregation(url, options, {
        environment: session.environment,
        screen,
      });
      screen.show(report, () => reportText(report, screen));
    });
}

interface AggregateOptions {
  readonly once?: boolean;
  readonly archive?: string;
}

async function runAggregation(
  url: string,
  { once = false, archive: place }: AggregateOptions,
  { environment, screen }: { readonly environment: Environment; readonly screen: Screen },
): Promise<RunnerReport> {
  const table = tableOptions(url);
  const archive = place === undefined ? undefined : await archiveAt(place, table, environment);
  const stopping = new AbortController();
  const display = new RunnerDisplay(environment, screen);
  const stop = (): void => {
    display.say("Ending after the batches that are under way. Interrupt again to end at once.");
    stopping.abort();
  };
  const stopListening = environment.onInterrupt(stop, { orUnread: !once });
  try {
    return await environment.runAggregator({
      ...table,
      once,
      signal: stopping.signal,
      ...(archive !== undefined && { archive }),
      onProgress: (progress) => display.show(progress),
      onProblem: (problem) => display.say(problemText(problem)),
    });
  } finally {
    stopListening();
    screen.endProgress();
  }
}

async function archiveAt(
  place: string,
  { region }: { readonly region?: string },
  { env }: Environment,
): Promise<AuditArchive> {
  const { folderArchive, s3Archive } = await import("zae-limiter/aggregator");
  // A letter and a colon are a drive. Anything else that begins like a URL is not a folder.
  if (!/^[a-z][a-z\d+.-]+:/i.test(place)) return folderArchive(place);
  // A bucket is likely to be where its table is, unless the environment says otherwise.
  const bucketRegion = env["AWS_REGION"] || region;
  return s3Archive(place, bucketRegion ? { region: bucketRegion } : {});
}

function reportText(report: RunnerReport, { colours }: Screen): string {
  const fields = fieldsText(
    [
      ["Records", report.records],
      ["Counted", report.counted],
      ["Skipped", report.skipped || undefined],
      ["Snapshot writes", report.snapshotWrites],
      ["Archived", report.archived],
      ["Expired without archive", report.dropped || undefined],
      ["Splits", report.splits],
      ["Merges", report.merges],
      ["Checkpoints", report.checkpoints],
    ],
    colours,
  );
  const end =
    report.ended === "counted"
      ? "Everything that the stream held at the start is counted."
      : "Stopped. The next run continues here.";
  return `${fields}${end}\n`;
}
