import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const dist = fileURLToPath(new URL("../../dist/", import.meta.url));

/** What a process says that sleeps, and has nothing else to do. */
async function getHeard(sleep: string): Promise<string> {
  const script = `
    const { systemClock, CorrectedClock } = await import(process.argv[1] + "repository/system-clock.js");
    const corrected = new CorrectedClock(systemClock);
    ${sleep}.then(() => console.log("awake"));
    console.log("asleep");`;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--input-type=module", "-e", script, dist],
    { timeout: 30_000 },
  );
  return stdout.trim().replaceAll("\n", ", ");
}

it.each([
  ["systemClock.sleep(50)", "asleep, awake"],
  ["systemClock.sleep(50, undefined, { holdsProcess: true })", "asleep, awake"],
  ["systemClock.sleep(600_000, undefined, { holdsProcess: false })", "asleep"],
  ["systemClock.sleep(Infinity, new AbortController().signal, { holdsProcess: false })", "asleep"],
  ["corrected.sleep(600_000, undefined, { holdsProcess: false })", "asleep"],
])("a process with nothing but %s says: %s", { timeout: 60_000 }, async (sleep, said) => {
  expect(await getHeard(sleep)).toBe(said);
});
