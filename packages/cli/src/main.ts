import { openRepository } from "zae-limiter/open";
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
  nowMs: () => Date.now(),
  nodeNotice: holdNodeNotice(process),
});
