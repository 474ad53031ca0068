import { expect, it } from "vitest";
import type { RepositoryOptions } from "zae-limiter";
import { openRepository } from "zae-limiter/open";
import { ManualClock } from "zae-limiter/testing";
import { describeWithEngine, freshTableName } from "../../limiter/test/support/engine.ts";
import { openTransport } from "../../limiter/test/support/transports.ts";
import { heartbeatItem, usageItem } from "../../limiter/test/support/usage-item.ts";
import { readJson, zaeLimiter, type Outcome } from "./command-line.ts";

const HOUR_MS = 3_600_000;
const START_MS = Date.parse("2026-11-15T06:00:00Z");
const NOW_MS = START_MS + 3.5 * HOUR_MS;

describeWithEngine("usage that an aggregator counts", (engine) => {
  it("is shown with how far it is counted, and says so when that is long ago", async () => {
    const TableName = freshTableName();
    const endpoint = encodeURIComponent(engine().endpointUrl);
    const url = `dynamodb://eu-west-1/${TableName}?endpoint=${endpoint}`;
    const clock = new ManualClock(NOW_MS);
    const setup = {
      nowMs: () => clock.now(),
      env: { ZAEL_REPOSITORY: url },
      open: (address: string, options?: RepositoryOptions) =>
        openRepository(address, { ...options, clock }),
    };
    const run = (line: string): Promise<Outcome> => zaeLimiter(line, setup);
    await run("namespace register default");
    const transport = await openTransport("lean", engine());
    const put = (Item: object): Promise<object> =>
      transport.call("PutItem", { TableName, Item }, { signal: AbortSignal.timeout(10_000) });

    const never = await run("usage list key-1");
    expect(never).toMatchObject({ code: 1, stdout: "" });
    expect(never.stderr).toContain("zae-limiter aggregate");
    expect((await run("status")).stdout).toContain(
      "Counted until  never; to start a runner: zae-limiter aggregate\n",
    );

    const { namespaceId } = (await readJson("status", setup)) as { namespaceId: string };
    for (const [hour, tokens] of [
      [0, 40],
      [1, 0.5],
    ] as const) {
      const row = {
        entityId: "key-1",
        resource: "gpt-4",
        window: "hourly",
        windowStartMs: START_MS + hour * HOUR_MS,
        counters: { tpm: tokens },
        requests: 1,
      } as const;
      await put(usageItem(namespaceId, row, 9_999_999_999));
    }
    await put(heartbeatItem(START_MS + 1.5 * HOUR_MS));

    const old =
      "Usage is counted until 2026-11-15 07:30:00Z, 2 hours ago; anything later is missing. " +
      "If no aggregator is running, start one: zae-limiter aggregate\n";
    expect(await run("usage list key-1")).toEqual({
      code: 0,
      stdout:
        "Window                  Entity  Resource  Requests  tpm\n" +
        "2026-11-15 06:00:00Z    key-1   gpt-4            1   40\n" +
        "2026-11-15 07:00:00Z *  key-1   gpt-4            1  0.5\n" +
        "* may still grow\n",
      stderr: old,
    });
    const listed = await run("usage list key-1 --plot");
    expect(listed.stdout).toMatch(/^2026-11-15 06:00:00Z {4}1 {2}█+$/m);
    expect(listed.stdout).toMatch(/^2026-11-15 07:00:00Z \* {2}1 {2}█+$/m);
    expect(listed.stdout).toMatch(/\n\* may still grow\n$/);
    const summary = await run("usage summary key-1");
    expect(summary.stdout).toMatch(/ to 2026-11-15 07:00:00Z \*\n.*\n\* may still grow\n$/);
    expect(summary.stderr).toBe(old);
    const plotted = await run("usage summary key-1 --plot");
    expect(plotted.stdout).toMatch(/^total of 2 snapshots: requests 2 \*\n/);
    expect(plotted.stdout).toMatch(/\n\* may still grow\n$/);
    const countedUntil = "2026-11-15T07:30:00.000Z";
    expect(await readJson("usage list key-1", setup)).toMatchObject({
      items: [{ complete: true }, { complete: false, counters: { tpm: 0.5 } }],
      countedUntil,
    });
    expect(await readJson("usage summary key-1", setup)).toMatchObject({
      total: { tpm: 40.5 },
      countedUntil,
    });
    expect(await readJson("status", setup)).toMatchObject({
      countedUntil,
      capabilities: { usageSnapshots: true },
    });
    expect((await run("status")).stdout).toContain(
      "Counted until  2026-11-15 07:30:00Z, 2 hours ago\n",
    );

    await put(heartbeatItem(NOW_MS - 10 * 60_000));
    const young = await run("usage summary key-1");
    expect(young.stderr).toBe("");
    expect(young.stdout).not.toContain("*");
    transport.close();
  });
});
