import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const DIST = fileURLToPath(new URL("../../../dist/", import.meta.url));

/** A time-out for a process that hangs, not a measure: it ends at once if nothing holds it. */
const DEADLINE_MS = 30_000;

/** `idleMs` is 300 s here, on the clock of the system. */
const SCRIPT = `
  const { Limit, RateLimiter } = await import(process.argv[1] + "index.js");
  const { MemoryRepository } = await import(process.argv[1] + "repository/memory/index.js");
  const { Meter } = await import(process.argv[1] + "llm/meter.js");
  const repository = new MemoryRepository();
  await repository.setSystemDefaults([Limit.perDay("tpd", 10_000)]);
  const limiter = new RateLimiter({ repository });
  const meter = new Meter(
    { limiter, entity: "key-1", metering: { tpd: { input: 1, output: 1 } } },
    "the test",
  );
  const call = { model: "gpt-5", textBytes: 400, texts: () => [], images: 0, choices: 1, stream: true };
  const soFar = { outputBytes: 0, isReportFinal: false, isComplete: false, hasUnreadableUsage: false };
  const answer = { ...soFar, read: (chunk) => chunk, end: () => undefined };
  const stream = new ReadableStream({ pull: (controller) => controller.enqueue("text") });
  const abort = new AbortController();
  const watched = (await meter.begin(call)).watch(stream, answer, abort.signal);
  if (process.argv[2] === "left") await watched.getReader().read();
  console.log("timers: " + process.getActiveResourcesInfo().filter((name) => name === "Timeout"));
`;

it.each(["never read", "left"])(
  "a stream that is %s does not hold the process",
  async (how) => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--input-type=module", "-e", SCRIPT, DIST, how],
      { timeout: DEADLINE_MS },
    );
    expect(stdout).toBe("timers: \n");
  },
  2 * DEADLINE_MS,
);
