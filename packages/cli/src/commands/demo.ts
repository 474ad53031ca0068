import { existsSync } from "node:fs";
import { basename } from "node:path";
import { Option, type Command } from "commander";
import { demo, type DemoResult } from "../demo/demo.ts";
import { EXIT } from "../exit.ts";
import type { Colours } from "../output/colours.ts";
import { numberText, wrapped } from "../output/text.ts";
import { durationMsArgument } from "./support/arguments.ts";
import type { Session } from "./support/session.ts";
import { addVerb, yesOption } from "./support/verb.ts";

const DEFAULT_FILE = "./zae-limiter-demo.db";
const DEFAULT_SECONDS = "20";

/** Demo: a small simulated LLM gateway that checks the limiter's promises on what it did. */
export function addDemoCommand(program: Command, session: Session): void {
  addVerb(program, {
    usage: "demo",
    summary:
      "Runs a small simulated LLM gateway in two processes on a fresh SQLite file, shows it live, and checks the promises on what it did.",
    examples: ["demo", "demo --seconds 60 --file ./gateway.db"],
  })
    .addOption(
      new Option("--seconds <seconds>", "how long it runs")
        .argParser(durationMsArgument)
        .default(durationMsArgument(DEFAULT_SECONDS), DEFAULT_SECONDS),
    )
    .option("--file <path>", "the SQLite file; an existing one is replaced", DEFAULT_FILE)
    .addOption(yesOption())
    .addOption(
      new Option("--fault <fault>", "break the limiter on purpose")
        .choices(["double-refill"])
        .hideHelp(),
    )
    .action(
      async (
        { seconds: lengthMs, file, fault, yes = false }: DemoCommandOptions,
        command: Command,
      ) => {
        // The demo's own file is replaced without asking; a file of another name might hold
        // somebody's limits.
        if (existsSync(file) && basename(file) !== basename(DEFAULT_FILE))
          await session.confirm(`Replace the file ${file}?`, { yes });
        const screen = session.screen(command);
        const { environment } = session;
        const options = {
          file,
          lengthMs,
          watched: !screen.json,
          ...(fault !== undefined && { fault }),
        };
        const result = await demo(options, environment, screen.colours);
        screen.show(
          result,
          () => summaryText(result, screen.columns, screen.colours) + nextText(file),
        );
        session.exitWith(result.ok ? EXIT.done : EXIT.failed);
      },
    );
}

interface DemoCommandOptions {
  /** In milliseconds; the command line says seconds. */
  readonly seconds: number;
  readonly file: string;
  readonly fault?: string;
  readonly yes?: boolean;
}

/** The width of the word that a check begins with, and the space behind it. */
const VERDICT_CELLS = 7;

function summaryText(result: DemoResult, columns: number, colours: Colours): string {
  const { granted, refused, failed, unavailable, unwritten, byProcess, checks } = result;
  const trouble =
    unavailable + unwritten === 0
      ? ""
      : ` The file was busy for ${unavailable} calls and ${unwritten} ends of calls.`;
  const counts = `${numberText(granted)} calls granted (${byProcess.map(numberText).join(" and ")} by process), ${numberText(failed)} of them failed and gave everything back; ${numberText(refused)} refused.${trouble}`;
  const lines = checks.map(({ promise, ok, detail }) => {
    const verdict = wrapped(
      `${ok ? colours.green("ok    ") : colours.red("FAILED")} ${promise}`,
      columns,
      VERDICT_CELLS,
    );
    return `${verdict}\n${wrapped(" ".repeat(VERDICT_CELLS) + detail, columns, VERDICT_CELLS)}\n`;
  });
  return `\n${wrapped(counts, columns)}\n\nRead back from the file by a fresh repository:\n${lines.join("")}`;
}

/** What to try next on the same file. These lines are run by a test, as they stand. */
function nextText(file: string): string {
  const url = /^[\w./-]+$/.test(file)
    ? `sqlite:${file}`
    : `'sqlite:${file.replaceAll("'", String.raw`'\''`)}'`;
  const verbs = [
    "usage summary --entity-id project-apollo",
    "usage list --entity-id project-apollo --plot",
    "entity children project-apollo",
    "bucket show key-web",
    "available key-web model-large rpm=1 tpm=500",
    "acquire key-web model-small rpm=1 tpm=100 --wait 5",
    "audit list --entity-id project-apollo",
  ];
  const lines = [
    `export ZAEL_REPOSITORY=${url}`,
    ...verbs.map((verb) => `npx zae-limiter ${verb}`),
  ];
  return `\nTry next, on the same file:\n${lines.map((line) => `  ${line}\n`).join("")}`;
}
