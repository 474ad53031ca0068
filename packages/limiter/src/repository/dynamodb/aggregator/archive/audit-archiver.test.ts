import { EventEmitter, once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished } from "vitest";
import { namespaceItem, removal, type Removal } from "../../../../../test/support/audit-records.ts";
import { createError, scriptedProcess } from "../../../../../test/support/scripted-table.ts";
import type { StreamRecord } from "../stream-record.ts";
import type { AuditArchive } from "./archive.ts";
import { AuditArchiver, type ArchiveReport } from "./audit-archiver.ts";
import { folderArchive } from "./folder-archive.ts";

/** An archive in a folder, in front of which a test may stand, and who stores in it. */
class World {
  readonly folder = mkdtempSync(join(tmpdir(), "archive-"));
  readonly process = scriptedProcess({ maxAttempts: 1 });
  /** Fails the storing of an object, by its name. */
  fault: (name: string) => Promise<void> | void = () => {};
  readonly #archiver: AuditArchiver;

  constructor({ archive = true } = {}) {
    onTestFinished(() => rmSync(this.folder, { recursive: true, force: true }));
    const folder = folderArchive(this.folder);
    const faulty: AuditArchive = {
      store: async (name, content) => {
        await this.fault(name);
        await folder.store(name, content);
      },
    };
    this.#archiver = new AuditArchiver({
      connection: this.process.connection,
      archive: archive ? faulty : undefined,
    });
    this.process.table.put(namespaceItem("nsid", "team-a"));
  }

  archive(records: readonly StreamRecord[]): Promise<ArchiveReport> {
    return this.#archiver.archive(records);
  }

  /** The content of every object, by name. */
  get objects(): Readonly<Record<string, Uint8Array>> {
    const names = readdirSync(this.folder, { recursive: true, encoding: "utf8" });
    return Object.fromEntries(
      names
        .filter((name) => statSync(join(this.folder, name)).isFile())
        .toSorted()
        .map((name) => [name, readFileSync(join(this.folder, name))]),
    );
  }

  /** The ids of the events in every folder. */
  get events(): Readonly<Record<string, readonly string[]>> {
    const found: Record<string, string[]> = {};
    for (const [name, content] of Object.entries(this.objects)) {
      const ids = listLines(content).map(({ event_id: id }) => String(id));
      (found[name.replace(/\/[^/]*$/, "")] ??= []).push(...ids);
    }
    return found;
  }
}

function listLines(content: Uint8Array): readonly Readonly<Record<string, unknown>>[] {
  const text = gunzipSync(content).toString();
  expect(text.endsWith("\n")).toBe(true);
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

function removals(...removed: readonly Removal[]): readonly StreamRecord[] {
  return removed.map(removal);
}

const DAY = "audit/namespace=team-a/year=2026/month=01/day=15";

describe("an event that expires", () => {
  it("becomes a line with the namespace, in the folder of its own day [W-26]", async () => {
    const world = new World();
    const report = await world.archive(removals({ eventId: "01A" }));
    expect(report).toEqual({ failures: [], archived: 1, dropped: 0 });
    const [[name, content]] = Object.entries(world.objects) as [[string, Uint8Array]];
    expect(name).toMatch(new RegExp(`^${DAY}/01A-[0-9a-f]{16}\\.jsonl\\.gz$`));
    expect(listLines(content)).toEqual([
      {
        event_id: "01A",
        namespace: "team-a",
        namespace_id: "nsid",
        entity_id: "key-1",
        action: "limits_set",
        timestamp: "2026-01-15T12:00:00.000Z",
        principal: null,
        resource: "gpt-4",
        details: { limits: ["rpm:5/min"] },
      },
    ]);
  });

  it("is archived if its time to live ended it, and not if a user deleted it [W-26]", async () => {
    const world = new World();
    const report = await world.archive(
      removals(
        { eventId: "01A" },
        { eventId: "01B", userIdentity: undefined },
        { eventId: "01C", userIdentity: { type: "Service", principalId: "other.amazonaws.com" } },
        {
          eventId: "01D",
          userIdentity: { Type: "Service", PrincipalId: "dynamodb.amazonaws.com" },
        },
      ),
    );
    expect(report).toEqual({ failures: [], archived: 2, dropped: 0 });
    expect(world.events).toEqual({ [DAY]: ["01A", "01D"] });
  });

  it("is filed by namespace and by its own day, not by that of its neighbours [W-26]", async () => {
    const world = new World();
    world.process.table.put(namespaceItem("gone", "team-b", "deleted"));
    await world.archive(
      removals(
        { eventId: "01A", timestamp: "2026-01-15T23:59:59.999Z" },
        { eventId: "01B", timestamp: "2026-01-16T00:00:00.000Z" },
        { eventId: "01C", timestamp: "2026-01-16T01:00:00.000Z", namespaceId: "gone" },
        { eventId: "01D", timestamp: "2025-12-31T23:00:00-02:00", namespaceId: "purged" },
      ),
    );
    expect(world.events).toEqual({
      [DAY]: ["01A"],
      [DAY.replace("15", "16")]: ["01B"],
      "audit/namespace=team-b/year=2026/month=01/day=16": ["01C"],
      "audit/namespace=purged/year=2026/month=01/day=01": ["01D"],
    });
  });

  it("leaves buckets and other items that expire alone", async () => {
    const world = new World();
    const bucket = { PK: { S: "nsid/BUCKET#key-1#gpt-4#0" }, SK: { S: "#STATE" } };
    const report = await world.archive(removals({ eventId: "01A", attributes: bucket }));
    expect(report).toEqual({ failures: [], archived: 0, dropped: 0 });
    expect(world.objects).toEqual({});
    expect(world.process.table.operations).toEqual([]);
  });

  it("is counted as dropped where there is no archive", async () => {
    const world = new World({ archive: false });
    expect(await world.archive(removals({ eventId: "01A" }, { eventId: "01B" }))).toEqual({
      failures: [],
      archived: 0,
      dropped: 2,
    });
  });
});

describe("an object", () => {
  it("has the same name and the same bytes however often and in whatever order its events come [W-25]", async () => {
    const world = new World();
    const batch = removals({ eventId: "01B" }, { eventId: "01A" }, { eventId: "01C" });
    await world.archive(batch);
    const stored = world.objects;
    expect(world.events).toEqual({ [DAY]: ["01A", "01B", "01C"] });
    expect(await world.archive(batch)).toEqual({ failures: [], archived: 3, dropped: 0 });
    expect(await world.archive([...batch.toReversed(), ...batch])).toMatchObject({ archived: 6 });
    expect(world.objects).toEqual(stored);
    // Bytes 4 to 7 of the header are the time.
    expect([...Object.values(stored)[0]!.subarray(4, 8)]).toEqual([0, 0, 0, 0]);
  });

  it("has another name if it holds other events, so a batch cut differently replaces nothing", async () => {
    const world = new World();
    const batch = removals({ eventId: "01A" }, { eventId: "01B" });
    await world.archive(batch);
    await world.archive(batch.slice(0, 1));
    expect(Object.keys(world.objects)).toHaveLength(2);
    expect(new Set(world.events[DAY])).toEqual(new Set(["01A", "01B"]));
  });

  it("never names another folder, whatever is stored in the table", async () => {
    const world = new World();
    world.process.table.put(namespaceItem("bad", "../../etc"));
    await world.archive(
      removals({ eventId: "../../01A", namespaceId: "bad" }, { eventId: "a/b", namespaceId: ".." }),
    );
    for (const name of Object.keys(world.objects))
      expect(name).toMatch(/^audit\/namespace=[\w.-]+\/year=2026\/month=01\/day=15\/[\w.-]+$/);
    expect(Object.keys(world.objects)).toHaveLength(2);
  });

  it("holds details that JSON or this version does not know", async () => {
    const world = new World();
    await world.archive(
      removals(
        { eventId: "01A", attributes: { details: { M: { n: { N: "9007199254740993" } } } } },
        { eventId: "01B", attributes: { details: { M: { b: { B: "AQ==" } as never } } } },
        { eventId: "01C", attributes: { details: { M: { s: { SS: ["x"] } } } } },
      ),
    );
    const [content] = Object.values(world.objects);
    expect(listLines(content!).map(({ details }) => details)).toEqual([
      { n: "9007199254740993" },
      { M: { b: { B: "AQ==" } } },
      { s: ["x"] },
    ]);
  });

  it("is filed under the day of the removal if its event has no time that can be read", async () => {
    const world = new World();
    await world.archive(removals({ eventId: "01A", timestamp: "yesterday" }));
    expect(Object.keys(world.events)).toEqual(["audit/namespace=team-a/year=2026/month=04/day=15"]);
  });
});

describe("an archive that fails", () => {
  it("fails the records of that object only, and gets them when they come again [W-25, W-26]", async () => {
    const world = new World();
    const batch = removals(
      { eventId: "01A" },
      { eventId: "01B", timestamp: "2026-01-16T00:00:00Z" },
      { eventId: "01C" },
    );
    const outage = new Error("outage");
    world.fault = (name) => {
      if (name.includes("day=15")) throw outage;
    };
    expect(await world.archive(batch)).toEqual({
      failures: [
        { sequenceNumber: batch[0]!.sequenceNumber, error: outage },
        { sequenceNumber: batch[2]!.sequenceNumber, error: outage },
      ],
      archived: 1,
      dropped: 0,
    });
    expect(world.events).toEqual({ [DAY.replace("15", "16")]: ["01B"] });

    world.fault = () => {};
    expect(await world.archive(batch)).toEqual({ failures: [], archived: 3, dropped: 0 });
    expect(world.events).toEqual({
      [DAY]: ["01A", "01C"],
      [DAY.replace("15", "16")]: ["01B"],
    });
  });

  it("is not told of success before every object is stored [W-26]", async () => {
    const world = new World();
    const gate = new EventEmitter();
    world.fault = async () => {
      gate.emit("asked");
      await once(gate, "open");
    };
    const asked = once(gate, "asked");
    let isDone = false;
    const archiving = world.archive(removals({ eventId: "01A" })).then(() => (isDone = true));
    await asked;
    await new Promise((resolve) => setImmediate(resolve));
    expect(isDone).toBe(false);
    gate.emit("open");
    await archiving;
    expect(Object.keys(world.objects)).toHaveLength(1);
  });

  it("is asked for few objects at a time, however many days a batch has", async () => {
    const world = new World();
    let running = 0;
    let most = 0;
    world.fault = async () => {
      most = Math.max(most, (running += 1));
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    };
    const days = Array.from({ length: 40 }, (_, index) => ({
      eventId: `01${index}`,
      timestamp: new Date(Date.UTC(2026, 0, 1 + index)).toISOString(),
    }));
    expect(await world.archive(days.map(removal))).toMatchObject({ archived: 40, failures: [] });
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(8);
    expect(Object.keys(world.objects)).toHaveLength(40);
  });

  it("fails the records if the name of their namespace cannot be read", async () => {
    const world = new World();
    const { connection } = world.process;
    const failing = new AuditArchiver({
      connection: Object.assign(Object.create(connection) as typeof connection, {
        repeat: () => Promise.reject(createError("InternalServerError")),
      }),
      archive: folderArchive(world.folder),
    });
    const batch = removals({ eventId: "01A" });
    expect((await failing.archive(batch)).failures).toHaveLength(1);
    expect(world.objects).toEqual({});
    expect(await world.archive(batch)).toMatchObject({ archived: 1 });
  });

  it("asks the table once for the name of a namespace", async () => {
    const world = new World();
    await world.archive(removals({ eventId: "01A" }, { eventId: "01B", timestamp: "2026-02-01" }));
    await world.archive(removals({ eventId: "01C" }));
    expect(world.process.table.operations).toEqual(["BatchGetItem"]);
  });
});
