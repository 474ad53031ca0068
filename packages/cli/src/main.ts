import { openRepository } from "zae-limiter/open";
import { onInterrupt } from "./interrupt.ts";
import { holdNodeNotice } from "./node-notice.ts";
import { run } from "./program.ts";

// A reader that has seen enough (`… | head`) closes the pipe; that is not a failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
});

const { stdout, stderr, stdin, env, version: nodeVersion } = process;
// The code is set instead of calling exit(), so that output to a pipe is still flushed.
process.exitCode = await run(process.argv.slice(2), {
  stdout,
  stderr,
  stdin,
  env,
  nodeVersion,
  openRepository,
  // Loaded on first use: no other verb needs it.
  runAggregator: async (options) => (await import("zae-limiter/aggregator")).runAggregator(options),
  onInterrupt: (listener) => onInterrupt(process, listener),
  nowMs: () => Date.now(),
  nodeNotice: holdNodeNotice(process),
});
