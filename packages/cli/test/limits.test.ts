import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Limit, type Repository } from "zae-limiter";
import { openRepository } from "zae-limiter/open";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { observedDatabase } from "../../limiter/test/processes/sqlite/observed-database.ts";
import { onEveryBackend } from "./backends.ts";
import { zaeLimiter, type Outcome, type Setup } from "./command-line.ts";
import { FIRST, manifestFiles, SECOND } from "./manifest-file.ts";

const manifest = manifestFiles();

onEveryBackend((world) => {
  const run = (verb: string, file: string, ...more: readonly string[]): Promise<Outcome> =>
    world.run(["limits", verb, "-f", file, ...more]);

  it("plan shows what apply then does, after which there is nothing to change", async () => {
    const file = manifest(FIRST);
    const planned = await run("plan", file);
    expect(planned).toMatchObject({ code: 3, stderr: "" });
    expect(planned.stdout).toContain("+ create resource gpt-4\n");
    expect(planned.stdout).toMatch(/^ {4}\+ limits\.tpm +10000\/min:15000$/m);
    expect(planned.stdout).toMatch(
      /^\+ create entity key-1 for all resources\n {4}\+ limits\.rpm/m,
    );
    expect(planned.stdout).toContain(
      "Plan for default: 5 to create, 0 to update, 0 to delete, 0 unchanged.\n",
    );
    expect(await world.repository.getSystemDefaults()).toMatchObject({ limits: [] });

    expect(await run("apply", file, "--yes")).toMatchObject({
      code: 0,
      stdout: "Applied to default: 5 created, 0 updated, 0 deleted, 0 unchanged.\n",
      stderr: planned.stdout,
    });
    expect(await world.repository.getSystemDefaults()).toMatchObject({
      limits: [Limit.perMinute("rpm", 100)],
      onUnavailable: "allow",
    });
    expect(await world.repository.getEntity("key-1")).toMatchObject({ parentId: "acme" });
  });

  it("an unchanged manifest exits 0 and writes nothing, by any of the verbs [W-64]", async () => {
    const file = manifest(FIRST);
    await run("apply", file, "--yes");
    const { revision } = await world.repository.getProvisionerState();
    const getAudit = (what: string): Promise<unknown> => world.json(`audit list ${what}`);
    const audit = [await getAudit("--system"), await getAudit("key-1")];
    const nothing = { code: 0, stderr: "", stdout: "Nothing to change in default: 5 unchanged.\n" };
    for (const verb of ["plan", "diff", "apply"])
      expect(await run(verb, file), verb).toEqual(nothing);
    expect((await world.repository.getProvisionerState()).revision).toBe(revision);
    expect([await getAudit("--system"), await getAudit("key-1")]).toEqual(audit);
  });

  it("an update shows old and new values, and what leaves the manifest is deleted", async () => {
    await run("apply", manifest(FIRST), "--yes");
    await world.repository.setResourceDefaults("by-hand", [Limit.perMinute("rpm", 1)]);
    const { stdout } = await run("plan", manifest(SECOND));
    expect(stdout).toMatch(/^~ update system\n {4}~ limits\.rpm +100\/min → 200\/min$/m);
    expect(stdout).toMatch(/^- delete resource gpt-4\n(?: {4}- .*\n)+/m);
    expect(stdout).not.toContain("by-hand");
    await run("apply", manifest(SECOND), "--yes");
    expect(await world.repository.listResourcesWithDefaults()).toEqual(["by-hand"]);
  });

  it("diff marks what was changed by hand, plan shows levels: they differ [W-64]", async () => {
    const file = manifest(FIRST);
    await run("apply", file, "--yes");
    await world.repository.setSystemDefaults([Limit.perMinute("rpm", 7)]);
    const diff = await run("diff", file);
    expect(diff.code).toBe(3);
    expect(diff.stdout).toMatch(
      /^Where +Value +Stored +Declared\nsystem +limits\.rpm +7\/min +100\/min +drift\n/,
    );
    const plan = await run("plan", file);
    expect(plan.code).toBe(3);
    expect(plan.stdout).toMatch(/^~ update system\n {4}~ limits\.rpm +7\/min → 100\/min\n/);
    // A change of the manifest is not a change of the store.
    await world.repository.setSystemDefaults([Limit.perMinute("rpm", 100)]);
    expect((await run("diff", manifest(SECOND))).stdout).not.toContain("drift");
  });

  it("what is stored as declared is taken over without a question, and the output says so", async () => {
    await world.repository.setResourceDefaults("gpt-4", [Limit.perMinute("rpm", 7)]);
    const file = manifest({ resources: { "gpt-4": { limits: { rpm: 7 } } } });
    const unchanged = "Nothing to change in default: 1 unchanged.\n";
    expect(await run("plan", file)).toEqual({
      code: 0,
      stderr: "",
      stdout: `${unchanged}No manifest has declared 1 of these levels so far; limits apply takes it over.\n`,
    });
    expect(await run("apply", file)).toEqual({
      code: 0,
      stderr: "",
      stdout: `${unchanged}Took over 1 level that no manifest had declared.\n`,
    });
    for (const verb of ["plan", "apply"])
      expect(await run(verb, file)).toEqual({ code: 0, stderr: "", stdout: unchanged });
  });

  it("--json is the plan as it is declared, with counts, and the report", async () => {
    const file = manifest(FIRST);
    const planned = await run("plan", file, "--json");
    expect(planned).toMatchObject({ code: 3, stderr: "" });
    expect(JSON.parse(planned.stdout)).toMatchObject({
      namespace: "default",
      revision: 0,
      registered: true,
      counts: { create: 5, update: 0, delete: 0, unchanged: 0, drift: 0, adopt: 0 },
      entries: expect.arrayContaining([
        expect.objectContaining({ action: "create", level: "resource", resource: "gpt-4" }),
      ]),
    });
    expect((await run("diff", file, "--json")).stdout).toBe(planned.stdout);
    const applied = await run("apply", file, "--yes", "--json");
    expect(applied).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(applied.stdout)).toEqual({
      revision: (await world.repository.getProvisionerState()).revision,
      created: 5,
      updated: 0,
      deleted: 0,
      unchanged: 0,
    });
  });

  it("another parent than the stored one is an error of the plan, at its place", async () => {
    await world.repository.createEntity("other");
    await world.repository.createEntity("key-1", { parentId: "other" });
    for (const verb of ["plan", "apply"]) {
      const { code, stdout, stderr } = await run(verb, manifest(FIRST), "--json");
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(JSON.parse(stderr)).toMatchObject({
        error: { code: "ERR_LIMITER_MANIFEST", problems: [{ path: "entities.key-1.parent" }] },
      });
    }
    expect(await world.repository.getEntity("acme")).toBeUndefined();
  });

  describe("the namespace", () => {
    it.each(["plan", "diff", "apply"])(
      "is the manifest's: %s refuses any other one [W-64]",
      async (verb) => {
        const file = manifest({ ...FIRST, namespace: "team-a" });
        const words = ["limits", verb, "-f", file];
        const byOption = await world.run([...words, "--namespace", "team-b"]);
        expect(byOption).toMatchObject({ code: 2, stdout: "" });
        expect(byOption.stderr).toBe(
          "error: The manifest is about the namespace team-a, but --namespace says team-b. " +
            "Leave --namespace out, or correct one of the two.\n",
        );
        const byVariable = await world.run(words, { env: { ZAEL_NAMESPACE: "team-b" } });
        expect(byVariable).toMatchObject({ code: 2, stdout: "" });
        expect(byVariable.stderr).toContain("ZAEL_NAMESPACE says team-b");
        expect(await listNames(world.repository)).toEqual(["default"]);
      },
    );

    it("may be named as the manifest names it", async () => {
      const file = manifest({ ...FIRST, namespace: "team-a" });
      expect((await run("plan", file, "-N", "team-a")).code).toBe(3);
    });

    it("plans as if it were empty while it is not registered, and stays so", async () => {
      const file = manifest({ ...FIRST, namespace: "team-a" });
      for (const verb of ["plan", "diff"]) {
        const { code, stdout } = await run(verb, file);
        expect(code).toBe(3);
        expect(stdout).toMatch(
          /^Namespace team-a is not registered; limits apply will register it\.\n/,
        );
        expect(stdout).toContain("Plan for team-a: 5 to create");
      }
      expect(await listNames(world.repository)).toEqual(["default"]);
    });

    it("is registered by apply, after the confirmation", async () => {
      const file = manifest({ ...FIRST, namespace: "team-a" });
      const words = ["limits", "apply", "-f", file];
      expect(await world.run(words, { typed: "n\n" })).toMatchObject({ code: 1 });
      expect(await listNames(world.repository)).toEqual(["default"]);
      expect(await world.run(words, { typed: "y\n" })).toMatchObject({ code: 0 });
      expect(await listNames(world.repository)).toEqual(["default", "team-a"]);
      const team = await world.repository.namespace("team-a");
      expect(await team.getEntity("acme")).toMatchObject({ name: "Acme Inc" });
      expect(await world.repository.getEntity("acme")).toBeUndefined();
    });

    it("is registered by apply also if the manifest declares nothing", async () => {
      const words = ["limits", "apply", "-f", manifest({ namespace: "team-a" })];
      const unasked = await world.run(words);
      expect(unasked.code).toBe(2);
      expect(unasked.stderr).toContain("error: Register namespace team-a? This is not");
      expect(await world.run([...words, "--yes"])).toMatchObject({
        code: 0,
        stdout: "Registered namespace team-a.\nNothing to change in team-a: 0 unchanged.\n",
      });
      expect(await listNames(world.repository)).toEqual(["default", "team-a"]);
    });
  });
});

describe("a repository that is missing", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "zae-limiter-cli-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const run = (words: readonly string[], setup: Setup = {}): Promise<Outcome> =>
    zaeLimiter(["limits", ...words], {
      open: openRepository,
      env: { ZAEL_REPOSITORY: `sqlite:${folder}/limits.db` },
      ...setup,
    });

  /** The file, with the changes that drivers keep beside it while it is in use. */
  const stored = async (): Promise<Buffer> => {
    const path = join(folder, "limits.db");
    const database = await observedDatabase(path, {});
    database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get();
    database.close();
    return readFileSync(path);
  };

  it.each(["plan", "diff"])("is not created by %s", async (verb) => {
    const file = manifest(FIRST);
    const { code, stderr } = await run([verb, "-f", file]);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr:
        `error: The database ${folder}/limits.db does not exist. Check the path. To create it: ` +
        `zae-limiter --repository "sqlite:${folder}/limits.db" limits apply -f "${file}"\n`,
    });
    expect(readdirSync(folder)).toEqual([]);
  });

  it("is created by apply, once the plan is confirmed", async () => {
    const words = ["apply", "-f", manifest(FIRST)];
    expect((await run(words)).code).toBe(2);
    const declined = await run(words, { typed: "n\n" });
    expect(declined).toMatchObject({ code: 1, stdout: "" });
    expect(declined.stderr).toContain("Plan for default: 5 to create");
    expect(readdirSync(folder)).toEqual([]);
    expect(await run(words, { typed: "y\n" })).toMatchObject({ code: 0 });
    expect(existsSync(join(folder, "limits.db"))).toBe(true);
  });

  it("stays as it is, byte for byte, when there is nothing to change [W-64]", async () => {
    const words = ["apply", "-f", manifest(FIRST), "--yes"];
    await run(words);
    const before = await stored();
    expect(await run(words)).toMatchObject({ code: 0 });
    expect((await stored()).equals(before)).toBe(true);
  });
});

async function listNames(repository: Repository): Promise<readonly string[]> {
  return (await repository.listNamespaces()).map(({ name }) => name).toSorted();
}
