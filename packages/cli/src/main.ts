import { openRepository } from "zae-limiter/open";
import { onInterrupt } from "./interrupt.ts";
import { holdNodeNotice } from "./node-notice.ts";
import { run } from "./program.ts";

// A reader that has seen enough (`… | head`) closes the pipe. The verb goes on, so its exit code is
// the same; one that would go on for ever is told as of an interrupt.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});
// There is nowhere left to say it, and what is under way must not stop halfway.
process.stderr.on("error", () => {});

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
  onInterrupt: (listener, options) => onInterrupt(process, listener, options),
  nowMs: () => Date.now(),
  nodeNotice: holdNodeNotice(process),
});
