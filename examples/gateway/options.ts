import { parseArgs } from "node:util";

/** What the command line of the demo asks for. */
export interface CommandLineOptions {
  readonly file: string;
  readonly lengthMs: number;
  readonly fault?: string;
  readonly yes: boolean;
  readonly json: boolean;
  readonly help: boolean;
}

/** The demo cannot be run with these options; the message says what to change. */
export class UsageError extends Error {}

/** The file of the demo when no other is named. */
export const DEFAULT_FILE = "./zae-limiter-demo.db";

/** What `--help` prints. */
export const HELP = `Usage: npm start -- [options]

Runs a small simulated LLM gateway in two processes on a fresh SQLite file, shows a live view, and
checks the limiter's promises on what was done.

Options:
  --seconds <seconds>  how long it runs (default: 20)
  --file <path>        the SQLite file, which is replaced (default: ${DEFAULT_FILE})
  -y, --yes            replace a file of another name than the default
  --json               print the result as JSON, and nothing while it runs
  -h, --help           show this help
`;

/** A day. Timers of Node can run for 24 of them. */
const LONGEST_SECONDS = 86_400;

/** Faults that break the limiter on purpose, to show that the checks notice. */
const FAULTS: readonly string[] = ["double-refill"];

/** Reads the command line. Throws `UsageError` for anything that it does not know. */
export function parseOptions(args: readonly string[]): CommandLineOptions {
  const { seconds, file, fault, yes, json, help } = parseValues(args);
  if (!/^\d+(\.\d+)?$/.test(seconds) || Number(seconds) > LONGEST_SECONDS)
    throw new UsageError(
      `--seconds must be a number from 0 to ${LONGEST_SECONDS}, such as 5 or 0.5.`,
    );
  if (fault !== undefined && !FAULTS.includes(fault))
    throw new UsageError(`--fault must be one of: ${FAULTS.join(", ")}.`);
  return {
    file,
    lengthMs: Math.round(Number(seconds) * 1000),
    yes,
    json,
    help,
    ...(fault !== undefined && { fault }),
  };
}

function parseValues(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        seconds: { type: "string", default: "20" },
        file: { type: "string", default: DEFAULT_FILE },
        fault: { type: "string" },
        yes: { type: "boolean", short: "y", default: false },
        json: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}
