// The demo, as `npm start` runs it: a small simulated LLM gateway in two processes on a fresh
// SQLite file. It shows a live view and then checks the limiter's promises on what was done. Exits
// 0 when every promise was kept, 1 when one was not, 2 when the options are wrong, and 130 after
// Ctrl-C.
import { existsSync } from "node:fs";
import { basename } from "node:path";
import { runDemo } from "./demo.ts";
import { DEFAULT_FILE, HELP, parseOptions, UsageError } from "./options.ts";
import { nextText, summaryText } from "./summary.ts";
import { DEFAULT_COLUMNS, paintFor } from "./text.ts";

/** What a shell expects of a program that Ctrl-C has ended. */
const INTERRUPTED = 130;

// A reader that has seen enough (`… | head`) closes the pipe; that is not a failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
});

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`${paintFor(process.stderr)("red", "error:")} ${message}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}

async function main(args: readonly string[]): Promise<number> {
  const { help, json, yes, ...options } = parseOptions(args);
  const { stdout } = process;
  if (help) {
    stdout.write(HELP);
    return 0;
  }
  // The demo's own file is replaced without asking; a file of another name might hold real limits.
  if (existsSync(options.file) && basename(options.file) !== basename(DEFAULT_FILE) && !yes)
    throw new UsageError(`The file ${options.file} exists. Pass --yes to replace it.`);
  const paint = paintFor(stdout);
  const columns = stdout.columns || DEFAULT_COLUMNS;
  // The second process notices by itself that this one is gone.
  process.once("SIGINT", () => {
    process.stderr.write(`\nStopped early. What was done so far is in ${options.file}.\n`);
    process.exit(INTERRUPTED);
  });
  const result = await runDemo({ ...options, output: json ? undefined : stdout, paint });
  stdout.write(
    json
      ? `${JSON.stringify(result, undefined, 2)}\n`
      : summaryText(result, columns, paint) + nextText(options.file, columns),
  );
  return result.ok ? 0 : 1;
}
