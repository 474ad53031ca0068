import { openRepository } from "zae-limiter";
import { run } from "./program.ts";

// A reader that has seen enough (`… | head`) closes the pipe; that is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
});

const { stdout, stderr, stdin, env } = process;
// Set, not exit(): what was written to a pipe must still drain.
process.exitCode = await run(process.argv.slice(2), { stdout, stderr, stdin, env, openRepository });
