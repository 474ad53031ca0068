import { describe, expect, it } from "vitest";
import type { DeletedEntity, Repository } from "zae-limiter";
import { onEveryBackend } from "./backends.ts";
import { zaeLimiter } from "./command-line.ts";

onEveryBackend((world) => {
  const { run, json } = world;

  describe("entity ensure", () => {
    it("creates what is missing, and leaves what exists as it is", async () => {
      await run("entity ensure project-1");
      const created = await json(
        "entity ensure key-1 --parent project-1 --cascade --name Key --metadata team=search",
      );
      expect(created).toMatchObject({
        id: "key-1",
        name: "Key",
        parentId: "project-1",
        cascade: true,
        metadata: { team: "search" },
      });
      await world.clock.advance(1000);
      expect(await json("entity ensure key-1 --name Other --no-cascade")).toEqual(created);
      expect((await run("entity ensure key-1")).stdout).toBe(
        "Entity key-1 exists already, and stays as it is:\nEntity    key-1\nName      Key\nParent    project-1\n" +
          "Cascade   yes\nMetadata  team=search\nCreated   2026-11-15 06:30:00Z\n",
      );
      expect((await run("entity ensure key-2")).stdout).toBe("Created entity key-2.\n");
    });
  });

  describe("entity update", () => {
    it("changes what is named, keeps the rest, and is audited", async () => {
      await run("entity create key-1 --name Key --metadata team=search --metadata tier=1");
      expect(await json("entity update key-1 --cascade")).toMatchObject({
        name: "Key",
        cascade: true,
        metadata: { team: "search", tier: "1" },
      });
      expect(await json("entity update key-1 --display-name Other --metadata a=b")).toMatchObject({
        name: "Other",
        cascade: true,
        metadata: { a: "b" },
      });
      expect((await run("entity update key-1 --no-cascade")).stdout).toBe(
        "Updated entity key-1:\nEntity    key-1\nName      Other\nCascade   no\nMetadata  a=b\nCreated   2026-11-15 06:30:00Z\n",
      );
      expect(await json("audit list key-1 --limit 1")).toMatchObject({
        items: [{ action: "entity_updated" }],
      });
    });

    it("exits 2 without anything to change", async () => {
      expect(await run("entity update key-1")).toMatchObject({
        code: 2,
        stderr: "error: Pass at least one of --name, --metadata, --cascade and --no-cascade.\n",
      });
    });
  });

  it.each(["entity show", "entity delete --yes", "entity update --name x", "entity children"])(
    "%s of an unknown entity exits 1, and suggests a similar one",
    async (verb) => {
      await run("entity create key-1");
      expect(await run(`${verb} kye-1`)).toEqual({
        code: 1,
        stdout: "",
        stderr: "error: Entity kye-1 does not exist. Did you mean key-1?\n",
      });
      expect((await run(`${verb} someone-else`)).stderr).toBe(
        "error: Entity someone-else does not exist. To list entities: zae-limiter entity list\n",
      );
    },
  );

  it.each(["--name", "--display-name"])(
    "%s is the name of an entity, not of a stack",
    async (option) => {
      await run(["entity", "create", "team-a", option, "Team A"]);
      expect(await world.repository.getEntity("team-a")).toMatchObject({ name: "Team A" });
    },
  );

  it("the entity is an argument, or an option for scripts that use it", async () => {
    await run("system set-defaults rpm:10");
    await run("acquire key-1 gpt-4 rpm:1");
    await run("entity create key-1");
    for (const verb of ["usage list", "usage summary", "audit list"]) {
      const printed = await json(`${verb} key-1`);
      expect(JSON.stringify(printed)).toMatch(/requests|entity_created/);
      for (const option of ["-e key-1", "--entity-id key-1", "key-1 -e key-1"])
        expect(await json(`${verb} ${option}`)).toEqual(printed);
    }
  });

  it("limits and amounts are written with either sign, in arguments, options and lists", async () => {
    const limits = ["rpm:10", "tpm:100/min:150"];
    await run(`system set-defaults ${limits.join(" ")}`);
    const expected = await json("system get-defaults");
    for (const line of [
      "-l rpm:10 -l tpm:100/min:150",
      "-l rpm=10,tpm=100/min:150",
      "rpm=10,tpm:100/min:150",
      "rpm:10 --limit tpm=100/min:150",
      "-l tpm:100/min:150 rpm=10",
    ]) {
      await run("system delete-defaults -y");
      expect(await json(`system set-defaults ${line}`)).toEqual(expected);
    }
    for (const amounts of ["rpm=1 tpm=5", "rpm:1 tpm:5", "rpm=1,tpm:5"]) {
      expect((await run(`acquire key-1 gpt-4 ${amounts}`)).stdout).toBe("Granted: rpm 1, tpm 5\n");
      expect((await run(`available key-1 gpt-4 ${amounts}`)).stdout).toContain("The call fits.");
    }
  });

  it("available says nothing about a call when none is described", async () => {
    await run("system set-defaults rpm:10");
    expect((await run("available key-1 gpt-4")).stdout).toBe(
      "Entity  Limit  Available  Capacity  Rate    Set by\nkey-1   rpm           10        10  10/min  system\n",
    );
  });
});

it("says what an erasure on DynamoDB leaves", async () => {
  const deleted: DeletedEntity = {
    records: 1,
    usageRecords: 2,
    auditEvents: 3,
    usageMayFollowUntil: new Date("2026-11-15T06:30:00Z"),
    archivedUnder: "audit/namespace=team/",
  };
  const repository = {
    namespace: async () => repository,
    deleteEntity: async () => deleted,
    close: async () => {},
  } as unknown as Repository;
  const { stdout } = await zaeLimiter("entity delete key-1 --with-history -y", { repository });
  expect(stdout).toBe(
    "Deleted entity key-1: 1 records, 2 of usage, 3 audit events.\n" +
      "If an aggregator runs, it may still count usage until 2026-11-15 06:30:00Z. " +
      "Run this again when zae-limiter status shows a later time.\n" +
      "If an aggregator has an archive, older audit events remain there, under audit/namespace=team/\n",
  );
});
