import { Limit } from "zae-limiter";
import { beforeEach, describe, expect, it } from "vitest";
import { onEveryBackend } from "./backends.ts";

const rpm = (rate: number): Limit => Limit.perMinute("rpm", rate);
const tpm = (rate: number): Limit => Limit.perMinute("tpm", rate);
const rpd = (rate: number): Limit => Limit.perDay("rpd", rate);

onEveryBackend((world) => {
  const { run, json } = world;

  beforeEach(async () => {
    await world.repository.setSystemDefaults([rpm(60), tpm(10_000)]);
  });

  describe("a list that would hide limits of the levels below", () => {
    it.each([
      ["entity set-limits team-a rpm:600 --replace", "tpm 10,000/min (system)"],
      ["entity set-limits team-a -r gpt-4 rpm:600 --replace", "tpm 10,000/min (system)"],
      ["resource set-defaults gpt-4 rpm:600 --replace", "tpm 10,000/min (system)"],
      [
        "entity set-limits team-a rpd:5/day --replace",
        "rpm 60/min (system), tpm 10,000/min (system)",
      ],
    ])("is refused in a pipe, with exit 2 and their names: %s", async (line, names) => {
      const before = await world.repository.getAuditEvents("team-a");
      expect(await run(line)).toEqual({
        code: 2,
        stdout: "",
        stderr:
          `error: This list would hide limits of the levels below: ${names}. Hide them? ` +
          "This is not running in a terminal, so it cannot ask. Pass --yes to confirm.\n",
      });
      expect(JSON.parse((await run(`${line} --json`)).stderr)).toMatchObject({
        error: { code: "ERR_CLI_USAGE", message: expect.stringContaining(names) },
      });
      expect(await world.repository.getLimits("team-a")).toEqual([]);
      expect(await world.repository.getResourceDefaults("gpt-4")).toEqual([]);
      expect(await world.repository.getAuditEvents("team-a")).toEqual(before);
    });

    it("for all resources hides the defaults of each of them", async () => {
      await world.repository.setResourceDefaults("gpt-4", [rpm(20), rpd(100)]);
      await world.repository.setResourceDefaults("gpt-5", [rpm(20), tpm(400)]);
      const { code, stderr } = await run("entity set-limits team-a rpm:600 --replace");
      expect(code).toBe(2);
      expect(stderr).toContain(
        ": tpm 10,000/min (system), rpd 100/day (resource gpt-4), tpm 400/min (resource gpt-5).",
      );
    });

    it("is kept from no limit that another level hides or replaces anyway", async () => {
      const replace = { inherit: false };
      await world.repository.setResourceDefaults("gpt-4", [rpm(20)], replace);
      expect((await run("entity set-limits team-a -r gpt-4 rpm:600 --replace")).code).toBe(0);
      await world.repository.setLimits("team-b", [rpm(1)], { resource: "gpt-5", ...replace });
      await world.repository.setResourceDefaults("gpt-5", [rpm(1), rpd(1)], replace);
      const { stderr } = await run("entity set-limits team-b rpm:600 --replace");
      expect(stderr).toContain("tpm 10,000/min (system)");
      expect(stderr).not.toContain("rpd");
      await world.repository.setLimits("team-b", [rpd(1)], { resource: "gpt-5" });
      expect((await run("entity set-limits team-b rpm:600 --replace")).stderr).not.toContain("rpd");
    });

    it.each([
      ["y\n", 0, false],
      ["\n", 1, undefined],
      ["", 1, undefined],
    ])("asks a person, and acts on the answer %j", async (typed, code, inherit) => {
      const outcome = await run("entity set-limits team-a rpm:600 --replace", { typed });
      expect(outcome.stderr).toContain("tpm 10,000/min (system). Hide them? [y/N] ");
      expect(outcome.code).toBe(code);
      expect((await world.repository.getLevel({ entityId: "team-a" }))?.inherit).toBe(inherit);
    });

    it("is not asked about with --yes, and never without --replace", async () => {
      await run("entity set-limits team-a rpm:600 --replace --yes");
      expect(await world.repository.resolveLimits("team-a", "gpt-4")).toMatchObject({
        limits: [rpm(600)],
      });
      await run("entity set-limits team-a rpm:600");
      expect(await world.repository.resolveLimits("team-a", "gpt-4")).toMatchObject({
        limits: [rpm(600), tpm(10_000)],
        sources: { rpm: "entity_default", tpm: "system" },
      });
      await run("resource set-defaults gpt-4 rpm:20");
      expect(await world.repository.resolveLimits("team-b", "gpt-4")).toMatchObject({
        limits: [rpm(20), tpm(10_000)],
      });
    });

    it.each(["", " --replace"])(
      "is not there when it names everything, and%s is accepted",
      async (option) => {
        for (const verb of ["entity set-limits team-a", "resource set-defaults gpt-4"])
          expect(await json(`${verb} rpm:1 tpm:2${option}`)).toEqual([rpm(1), tpm(2)]);
        expect((await run(`system set-defaults rpm:1 tpm:2${option}`)).code).toBe(0);
        const { levels } = (await world.repository.resolveLimits("team-a", "gpt-4"))!;
        expect(levels.map(({ inherit }) => inherit)).toEqual(Array(3).fill(option === ""));
      },
    );
  });

  describe("the policy in force", () => {
    it("ends what set-limits and set-defaults print, one line a limit with its level", async () => {
      expect((await run("resource set-defaults gpt-4 rpm:20 rpd:100/day")).stdout).toBe(
        "Set the defaults of gpt-4.\nIn force for an entity without limits of its own:\n" +
          "Limit  Rate         Burst  Set by\nrpm    20/min          20  resource\n" +
          "rpd    100/day        100  resource\ntpm    10,000/min  10,000  system\n",
      );
      expect((await run("entity set-limits team-a -r gpt-4 rpm:600")).stdout).toBe(
        "Set the limits of team-a for gpt-4.\nIn force for team-a on gpt-4:\n" +
          "Limit  Rate         Burst  Set by\nrpm    600/min        600  entity\n" +
          "rpd    100/day        100  resource\ntpm    10,000/min  10,000  system\n",
      );
      expect((await run("entity set-limits team-a rpm:7 --replace --yes")).stdout).toBe(
        "Set the limits of team-a for all resources.\n" +
          "In force for team-a on a resource without limits of its own:\n" +
          "Limit  Rate   Burst  Set by\nrpm    7/min      7  entity_default\n",
      );
    });

    it("is shown by get-limits, also where the entity has none of its own", async () => {
      const table =
        "Limit  Rate         Burst  Set by\nrpm    60/min          60  system\ntpm    10,000/min  10,000  system\n";
      expect((await run("entity get-limits team-a -r gpt-4")).stdout).toBe(
        `team-a has no limits of its own for gpt-4.\nIn force for team-a on gpt-4:\n${table}`,
      );
      expect((await run("entity get-limits team-a")).stdout).toBe(
        `team-a has no limits of its own for all resources.\nIn force for team-a on a resource without limits of its own:\n${table}`,
      );
      await world.repository.setLimits("team-a", [tpm(5)]);
      expect((await run("entity get-limits team-a")).stdout).toBe(
        "In force for team-a on a resource without limits of its own:\n" +
          "Limit  Rate    Burst  Set by\ntpm    5/min       5  entity_default\nrpm    60/min     60  system\n",
      );
      expect(await json("entity get-limits team-a")).toEqual([tpm(5)]);
      expect(await json("entity get-limits team-a -r gpt-4")).toEqual([]);
    });

    it("is empty where no level sets any", async () => {
      await world.repository.deleteSystemDefaults();
      expect((await run("entity get-limits team-a")).stdout).toBe(
        "team-a has no limits of its own for all resources, and no other level sets any.\n",
      );
    });
  });

  describe("a parent without limits of its own", () => {
    const NOTE =
      "Note: project-1 has no limits of its own. The defaults apply to it as to one key, and all its keys " +
      "together share that allowance. To give it its own: zae-limiter entity set-limits project-1 rpm:1000\n";

    beforeEach(() => world.repository.createEntity("project-1"));

    it("is pointed out by every verb that lets calls cascade into it", async () => {
      expect((await run("entity create key-1 --parent project-1 --cascade")).stdout).toBe(
        `Created entity key-1.\n${NOTE}`,
      );
      expect((await run("entity ensure key-2 --parent project-1 --cascade")).stdout).toBe(
        `Created entity key-2.\n${NOTE}`,
      );
      await run("entity create key-3 --parent project-1");
      expect((await run("entity update key-3 --cascade")).stdout).toContain(NOTE);
      await world.repository.deleteSystemDefaults();
      await world.repository.setResourceDefaults("gpt-4", [rpm(1)]);
      expect((await run("entity create key-4 --parent project-1 --cascade")).stdout).toContain(
        NOTE,
      );
      const { stdout } = await run("entity create key-5 --parent project-1 --cascade --json");
      expect(JSON.parse(stdout)).toMatchObject({ id: "key-5" });
    });

    it.each([
      ["calls do not cascade", "--parent project-1", async () => {}],
      ["there is no parent", "--cascade", async () => {}],
      [
        "it has limits for all resources",
        "--parent project-1 --cascade",
        () => world.repository.setLimits("project-1", [rpm(1)]),
      ],
      [
        "it has limits for one",
        "--parent project-1 --cascade",
        () => world.repository.setLimits("project-1", [rpm(1)], { resource: "gpt-4" }),
      ],
      [
        "there are no defaults",
        "--parent project-1 --cascade",
        () => world.repository.deleteSystemDefaults(),
      ],
    ])("is not mentioned when %s", async (_, options, prepare) => {
      await prepare();
      expect((await run(`entity create key-1 ${options}`)).stdout).toBe("Created entity key-1.\n");
    });
  });
});
