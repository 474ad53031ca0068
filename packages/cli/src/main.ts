import { openRepository } from "zae-limiter/open";
import type { Environment } from "./environment.ts";
import { onInterrupt } from "./interrupt.ts";
import { holdNodeNotice } from "./node-notice.ts";
import { reportUnwritten, run } from "./program.ts";

// A reader that has seen enough (`… | head`) closes the pipe. The verb goes on, so its exit code is
// the same; a command that never ends gets the same signal as on Ctrl-C. After any other error,
// such as a full disk, it goes on too, but has failed.
let unwritten: Error | undefined;
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") unwritten ??= error;
});
// There is nowhere left to report it, and the running work must not stop halfway.
process.stderr.on("error", () => {});

const { stdout, stderr, stdin, env, version: nodeVersion } = process;
// The code is set instead of calling exit(), so that output to a pipe is still flushed.
const environment: Environment = {
  stdout,
  stderr,
  stdin,
  env,
  nodeVersion,
  openRepository,
  // Loaded on first use: no other verb needs it.
  runAggregator: async (options) => (await import("zae-limiter/aggregator")).runAggregator(options),
  onInterrupt: (listener, options) => onInterrupt(process, listener, options),
  nowMs: () => Date.now(),
  nodeNotice: holdNodeNotice(process),
};
const argv = process.argv.slice(2);
process.exitCode = await run(argv, environment);
// The last output may not be flushed yet.
process.on("exit", () => {
  if (unwritten !== undefined) process.exitCode = reportUnwritten(unwritten, argv, environment);
});
