import { Limit, type Repository } from "zae-limiter";
import { openRepository } from "zae-limiter/open";
import { ManualClock } from "zae-limiter/testing";
import { beforeEach, expect, it } from "vitest";
import { zaeLimiter, type Outcome } from "./command-line.ts";

let repository: Repository;
let clock: ManualClock;

const run = (line: string): Promise<Outcome> => zaeLimiter(line, { repository });

beforeEach(async () => {
  clock = new ManualClock(Date.parse("2026-11-15T09:00:00Z"));
  repository = await openRepository("memory:", { clock });
  await repository.setSystemDefaults([Limit.perMinute("tpm", 1000)]);
});

it("shows beside usage and capacity what came to parents by cascade", async () => {
  await run("entity create project");
  await run("entity create child --parent project --cascade");
  await run("acquire child gpt-4 tpm=50");
  await run("acquire project gpt-4 tpm=3");
  expect((await run("usage list -r gpt-4 --start 2026-11-15T09:00")).stdout).toBe(
    "Window                  Entity   Resource  Requests  tpm  By cascade\n" +
      "2026-11-15 09:00:00Z *  child    gpt-4            1   50\n" +
      "2026-11-15 09:00:00Z *  project  gpt-4            1    3  requests 1, tpm 50\n" +
      "* may still grow\n",
  );
  expect((await run("usage summary -e project")).stdout).toBe(
    "Limit  Total  Average  By cascade\ntpm       53       53          50\n\n" +
      "Snapshots   1, of windows starting 2026-11-15 09:00:00Z to 2026-11-15 09:00:00Z\n" +
      "Requests    2\nBy cascade  1\n",
  );
  expect((await run("capacity gpt-4 tpm")).stdout).toContain(
    "total              2,000      1,897    5.15\nof it, parents     1,000        947     5.3\n",
  );
});

it("fails when usage is not recorded, instead of showing none", async () => {
  const quiet = await openRepository("memory:", { recordUsage: false });
  for (const verb of ["list -e key-1", "summary -r gpt-4"]) {
    const outcome = await zaeLimiter(`usage ${verb}`, { repository: quiet });
    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(outcome.stderr).toContain("This repository does not record usage.");
  }
});
