import { beforeEach, describe, expect, it } from "vitest";
import { Limit } from "zae-limiter";
import { onEveryBackend } from "./backends.ts";

onEveryBackend((world) => {
  const { run, json } = world;

  describe("entity", () => {
    it("creates, shows, lists and deletes", async () => {
      expect(await run("entity create project-1")).toEqual({
        code: 0,
        stdout: "Created entity project-1.\n",
        stderr: "",
      });
      const created = await json(
        "entity create key-1 --parent project-1 --cascade --display-name Key --metadata team=search",
      );
      expect(created).toEqual({
        id: "key-1",
        name: "Key",
        parentId: "project-1",
        cascade: true,
        metadata: { team: "search" },
        createdAt: "2026-11-15T06:30:00.000Z",
      });
      expect((await run("entity show key-1")).stdout).toBe(
        "Entity    key-1\nName      Key\nParent    project-1\nCascade   yes\nMetadata  team=search\nCreated   2026-11-15 06:30:00Z\n",
      );
      expect(await json("entity children project-1")).toEqual([created]);
      expect(await json("entity list")).toMatchObject({
        items: [{ id: "key-1" }, { id: "project-1" }],
      });
      expect((await run("entity delete key-1 --yes")).stdout).toBe("Deleted entity key-1.\n");
      expect(await world.repository.getEntity("key-1")).toBeUndefined();
    });

    it("deletes with the history, also of what is gone already, and says what is left", async () => {
      await run("entity create key-1");
      await run("entity set-limits key-1 -l rpm:10");
      await run("acquire key-1 gpt-4 rpm=1");
      await run("entity delete key-1 --yes");
      const { records, auditEvents } = (await json("entity delete key-1 --with-history --yes")) as {
        readonly records: number;
        readonly auditEvents: number;
      };
      expect([records, auditEvents]).toEqual([0, 3]);
      expect(await json("audit list key-1")).toMatchObject({ items: [] });
      const again = await run("entity delete key-1 --with-history --yes");
      expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("does not exist")]);

      await world.repository.createEntity("key-2");
      const shown = await run("entity delete key-2 --with-history --yes", { terminal: true });
      expect(shown.stdout).toMatch(
        /^Deleted entity key-2: 1 records, 0 of usage, 2 audit events\.\n/,
      );
      expect(shown.stderr).toContain("Deleting key-2: 3 records");
    });

    it("exits 1, not 2, when an entity that has children is to be deleted", async () => {
      await world.repository.createEntity("project-1");
      await world.repository.createEntity("key-1", { parentId: "project-1" });
      const { code, stderr } = await run("entity delete project-1 --yes --json");
      expect(code).toBe(1);
      expect(JSON.parse(stderr)).toMatchObject({ error: { code: "ERR_LIMITER_VALIDATION" } });
    });

    it("shows as many as requested over several pages, and continues from a cursor [W-78]", async () => {
      for (let index = 0; index < 1005; index += 1)
        await world.repository.createEntity(`key-${String(index).padStart(4, "0")}`);
      const first = (await json("entity list --limit 1002")) as {
        items: { id: string }[];
        cursor: string;
      };
      expect(first.items).toHaveLength(1002);
      expect(first.items.at(-1)?.id).toBe("key-1001");
      const rest = (await json(`entity list --cursor ${first.cursor}`)) as {
        items: { id: string }[];
        cursor?: string;
      };
      expect(rest.items.map(({ id }) => id)).toEqual(["key-1002", "key-1003", "key-1004"]);
      expect(rest.cursor).toBeUndefined();
      expect((await run("entity list --limit 1")).stdout).toContain(
        "1 shown, and there are more. To continue, add --cursor ",
      );
    });

    it("sets, gets and deletes limits for one resource and for all", async () => {
      const set = await run("entity set-limits key-1 -l rpm:1000 -l tpm:10000/5min:15000");
      expect(set.stdout).toBe(
        "Set the limits of key-1 for all resources.\nIn force for key-1 on a resource without limits of its own:\nLimit  Rate          Burst  Set by\nrpm    1,000/min     1,000  entity_default\ntpm    10,000/5min  15,000  entity_default\n",
      );
      await run("entity set-limits key-1 --resource gpt-4 -l rpm:5 --replace --yes");
      expect(await json("entity get-limits key-1 -r gpt-4")).toEqual([
        { name: "rpm", capacity: 5, refillAmount: 5, refillPeriodSeconds: 60 },
      ]);
      expect(await json("entity list-resources")).toContain("gpt-4");
      expect(await json("entity list --with-custom-limits gpt-4")).toEqual({
        items: ["key-1"],
      });
      expect((await run("entity list --with-custom-limits gpt-5")).stdout).toBe(
        "No entity has limits of its own for gpt-5.\n",
      );
      await run("entity delete-limits key-1 -r gpt-4 -y");
      expect(await world.repository.getLimits("key-1", { resource: "gpt-4" })).toEqual([]);
      expect(await world.repository.getLimits("key-1")).toHaveLength(2);
    });
  });

  it("a bucket has no limits any more that were deleted for its entity [W-78]", async () => {
    await run("system set-defaults -l rpm:10");
    await run("entity set-limits key-1 -l rpm:1000");
    await run("acquire key-1 gpt-4 rpm:1");
    await run("entity delete-limits key-1 --yes");
    expect((await run("acquire key-1 gpt-4 rpm:11")).code).toBe(3);
    expect((await run("acquire key-1 gpt-4 rpm:1")).code).toBe(0);
    expect(await json("bucket show key-1 --resource gpt-4")).toMatchObject([
      { limitName: "rpm", capacityMilli: 10_000 },
    ]);
  });

  it.each([
    "entity list",
    "entity show key-1",
    "entity get-limits key-1",
    "entity list-resources",
    "resource list",
    "resource get-defaults gpt-4",
    "system get-defaults",
    "namespace list",
    "usage list key-1",
    "usage summary key-1",
    "audit list key-1",
    "bucket show key-1 --resource gpt-4",
    "capacity gpt-4 rpm",
    "status",
  ])("%s prints JSON for programs [W-78]", async (line) => {
    await run("system set-defaults -l rpm:10");
    await run("entity create key-1");
    await run("acquire key-1 gpt-4 rpm:1");
    expect(await json(line)).toBeTypeOf("object");
  });

  describe("resource and system", () => {
    it("sets, gets, lists and deletes a resource's defaults", async () => {
      await run("resource set-defaults gpt-4 -l rpm:60");
      expect(await json("resource list")).toEqual(["gpt-4"]);
      expect(await json("resource get-defaults gpt-4")).toMatchObject([
        { name: "rpm", capacity: 60 },
      ]);
      await run("resource delete-defaults gpt-4 --yes");
      expect((await run("resource get-defaults gpt-4")).stdout).toBe("gpt-4 has no defaults.\n");
    });

    it("keeps a stored setting that a later call leaves out [W-78]", async () => {
      await run("system set-defaults -l rpm:60 --on-unavailable allow --usage-retention-days 30");
      const stored = await json("system set-defaults -l rpm:70");
      expect(stored).toEqual({
        limits: [{ name: "rpm", capacity: 70, refillAmount: 70, refillPeriodSeconds: 60 }],
        onUnavailable: "allow",
        auditRetentionDays: 90,
        usageRetentionDays: 30,
      });
      expect((await run("system get-defaults")).stdout).toContain("Usage kept      30 days\n");
      await run("system delete-defaults -y");
      expect((await world.repository.getSystemDefaults()).limits).toEqual([]);
    });
  });

  describe("namespace", () => {
    it("says how to find the id of a deleted namespace when given an unknown one", async () => {
      for (const verb of ["recover", "purge"]) {
        const { code, stderr } = await run(`namespace ${verb} unknown`);
        expect([code, stderr]).toEqual([
          1,
          "error: No namespace has the id unknown. To list the ids of deleted ones: zae-limiter namespace orphans\n",
        ]);
      }
    });

    it("registers, deletes, recovers and purges", async () => {
      const ids = (await json("namespace register alpha beta")) as Record<string, string>;
      expect(Object.keys(ids)).toEqual(["alpha", "beta"]);
      await run("entity create key-1 --namespace alpha");
      expect(await json("namespace list")).toMatchObject([
        { name: "alpha" },
        { name: "beta" },
        { name: "default" },
      ]);
      expect(await json("namespace show alpha")).toMatchObject({
        name: "alpha",
        namespaceId: ids["alpha"],
        status: "active",
      });
      expect((await run("namespace delete alpha --yes")).stdout).toContain(
        `namespace recover ${ids["alpha"]}`,
      );
      expect(await json("namespace orphans")).toMatchObject([{ name: "alpha", status: "deleted" }]);
      expect((await run(`namespace recover ${ids["alpha"]}`)).stdout).toBe(
        "Recovered namespace alpha.\n",
      );
      expect((await run("entity show key-1 -N alpha")).code).toBe(0);
      expect((await run(`namespace purge ${ids["alpha"]} --yes`)).code).toBe(1);
      await run("namespace delete alpha --yes");
      const purge = await run(`namespace purge ${ids["alpha"]} --yes`, { terminal: true });
      expect(purge.stderr).toContain("Purging alpha: ");
      expect(purge.stdout).toMatch(/^Purged namespace alpha: \d+ records\.\n$/);
      expect((await run(`namespace purge ${ids["alpha"]} --yes`)).code).toBe(1);
    });

    it("says how to register a namespace that does not exist, and registers none", async () => {
      await world.repository.registerNamespace("tenant-alpha");
      for (const verb of [
        "entity list",
        "entity create key-1",
        "system set-defaults -l rpm:1",
        "acquire key-1 gpt-4 rpm=1",
      ]) {
        const { code, stderr } = await run(`${verb} --namespace tenant-alhpa`);
        expect(code).toBe(1);
        expect(stderr).toContain("Did you mean tenant-alpha?");
        expect(stderr).toContain("zae-limiter namespace register tenant-alhpa");
      }
      expect((await world.repository.listNamespaces()).map(({ name }) => name)).toEqual([
        "default",
        "tenant-alpha",
      ]);
      expect((await run("namespace show tenant-x")).code).toBe(1);
      expect((await run("namespace delete tenant-x --yes")).code).toBe(1);
    });

    it("takes the namespace from the option, or else from the environment", async () => {
      await world.repository.registerNamespaces(["alpha", "beta"]);
      const env = { ZAEL_NAMESPACE: "alpha" };
      await run("entity create key-a", { env });
      await run("entity create key-b --namespace beta", { env });
      expect(await (await world.repository.namespace("alpha")).getEntity("key-a")).toBeDefined();
      expect(await (await world.repository.namespace("beta")).getEntity("key-b")).toBeDefined();
    });
  });

  describe("acquire, available, bucket and capacity", () => {
    beforeEach(() =>
      world.repository.setSystemDefaults([
        { name: "rpm", capacity: 2, refillAmount: 2, refillPeriodSeconds: 60 },
      ]),
    );

    it("takes tokens once, and exits 3 with the waiting time when refused", async () => {
      expect(await run("acquire key-1 gpt-4 rpm=2")).toEqual({
        code: 0,
        stdout: "Granted: rpm 2\n",
        stderr: "",
      });
      const refused = await run("acquire key-1 gpt-4 rpm=1");
      expect(refused.code).toBe(3);
      expect(refused.stdout).toContain(
        "Refused: rpm of key-1 on gpt-4: 0 of 2 left, 1 requested. Retry in ",
      );
      expect(refused.stdout).toContain("Wait: 30 s\n");
      const { code, stdout } = await run("acquire key-1 gpt-4 rpm=1 --json");
      expect(code).toBe(3);
      expect(JSON.parse(stdout)).toMatchObject({
        error: "rate_limit_exceeded",
        retry_after_seconds: 30,
        limits: [{ limit_name: "rpm" }],
      });
      expect(JSON.parse((await run("acquire key-2 gpt-4 rpm=3 --json")).stdout)).toMatchObject({
        retry_after_seconds: null,
      });
    });

    it("leaves what its options say, and what its class must leave", async () => {
      await world.repository.setSystemDefaults([
        Limit.perMinute("rpm", 9, { reserve: { batch: 4 } }),
      ]);
      const acquire = "acquire key-1 gpt-4 rpm=3";
      const left = await run(`${acquire} --leave rpm=7`);
      expect(left.stdout).toContain("3 requested, 7 to be left");
      expect((await run(`${acquire} --priority batch`)).code).toBe(0);
      expect((await run(`${acquire} --priority batch`)).stdout).toContain("4 to be left");
    });

    it("waits for a call to fit with --wait", async () => {
      await run("acquire key-1 gpt-4 rpm=2");
      expect((await run("acquire key-1 gpt-4 rpm=1 --wait 29.9")).code).toBe(3);
      const waiting = run("acquire key-1 gpt-4 rpm=1 --wait 30");
      for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
      await world.clock.advance(30_000);
      expect((await waiting).code).toBe(0);
    });

    it("shows what is left without taking", async () => {
      expect(await json("available key-1 gpt-4")).toMatchObject({
        allowed: true,
        available: { rpm: 2 },
        retryAfterSeconds: 0,
      });
      const { stdout } = await run("available key-1 gpt-4 rpm=3");
      expect(stdout).toContain("The call can never fit.");
      await run("acquire key-2 gpt-4 rpm=2");
      expect((await run("available key-2 gpt-4 rpm=1")).stdout).toContain(
        "The call does not fit now; it will in 30 s.",
      );
      expect(await world.repository.getBuckets("key-1")).toEqual([]);
    });

    it("shows buckets and capacity", async () => {
      await run("acquire key-1 gpt-4 rpm=1");
      expect(await json("bucket show key-1")).toMatchObject([
        { resource: "gpt-4", limitName: "rpm", available: 1, tokensMilli: 1000 },
      ]);
      expect((await run("bucket show key-1 -r gpt-4")).stdout).toContain(
        "gpt-4     rpm    1/1            1         2  2 every 60 s",
      );
      expect(await json("bucket list gpt-4 --limit-name rpm")).toMatchObject({
        items: [{ entityId: "key-1", limits: [{ limitName: "rpm", available: 1 }] }],
      });
      await run("acquire key-2 gpt-4 rpm=2");
      expect((await run("bucket list gpt-4 --limit 1")).stdout).toMatch(
        /key-1 +rpm +1 +1 +2 +1\n1 shown, and there are more/,
      );
      expect((await run("bucket list gpt-4 --limit-name tpm")).stdout).toBe(
        "No entity has a bucket with the limit tpm on gpt-4 yet.\n",
      );
      await run("entity delete key-2 --yes");
      expect(await json("capacity gpt-4 rpm")).toMatchObject({
        totalCapacity: 2,
        totalAvailable: 1,
        utilizationPct: 50,
      });
      expect((await run("capacity gpt-4 rpm")).stdout).toContain(
        "total          2          1      50\n",
      );
    });

    it("fails when no limits are set for the entity", async () => {
      await run("system delete-defaults --yes");
      expect((await run("acquire key-1 gpt-4 rpm=1")).code).toBe(1);
    });
  });

  describe("usage and audit", () => {
    beforeEach(async () => {
      await world.repository.setSystemDefaults([
        { name: "tpm", capacity: 1000, refillAmount: 1000, refillPeriodSeconds: 60 },
      ]);
      await run("acquire key-1 gpt-4 tpm=400");
      await world.clock.advance(2 * 3_600_000);
      await run("acquire key-1 gpt-4 tpm=200");
      await run("acquire key-2 gpt-4 tpm=100");
    });

    it("lists usage windows", async () => {
      expect(await json("usage list -e key-1")).toMatchObject({
        items: [
          {
            entityId: "key-1",
            resource: "gpt-4",
            windowStart: "2026-11-15T06:00:00.000Z",
            counters: { tpm: 400 },
            requests: 1,
            complete: true,
          },
          {
            entityId: "key-1",
            windowStart: "2026-11-15T08:00:00.000Z",
            counters: { tpm: 200 },
            complete: false,
          },
        ],
      });
      expect((await run("usage list -r gpt-4 --start 2026-11-15T07:00")).stdout).toBe(
        "Window                  Entity  Resource  Requests  tpm\n2026-11-15 08:00:00Z *  key-1   gpt-4            1  200\n2026-11-15 08:00:00Z *  key-2   gpt-4            1  100\n* may still grow\n",
      );
      expect((await run("usage list -r gpt-5")).stdout).toBe("No usage in these windows.\n");
    });

    it("draws a chart, window by window, and marks a gap", async () => {
      const { stdout } = await run("usage list -r gpt-4 --plot");
      expect(stdout).toContain(
        `tpm\n2026-11-15 06:00:00Z    400  ${"█".repeat(51)}\n⋮\n2026-11-15 08:00:00Z *  300  ${"█".repeat(38)}▎\n* may still grow\n`,
      );
    });

    it("adds up windows", async () => {
      expect(await json("usage summary -e key-1")).toMatchObject({
        snapshotCount: 2,
        total: { tpm: 600 },
        average: { tpm: 300 },
        requests: 2,
      });
      expect((await run("usage summary -r gpt-4 -w daily")).stdout).toContain(
        "Limit  Total  Average\ntpm      700      700\n",
      );
      expect((await run("usage summary -r gpt-4 --plot")).stdout).toContain("tpm       700  ");
    });

    it("lists changes, newest first", async () => {
      await run("entity create key-1");
      await run("entity set-limits key-1 -l tpm:5");
      expect(await json("audit list -e key-1")).toMatchObject({
        items: [{ action: "limits_set" }, { action: "entity_created" }],
      });
      expect((await run("audit list --system")).stdout).toContain("limits_set");
      expect((await run("audit list --resource gpt-4")).stdout).toBe(
        "No changes to $RESOURCE:gpt-4 are recorded.\n",
      );
      expect((await run("audit list")).code).toBe(2);
    });
  });
});
