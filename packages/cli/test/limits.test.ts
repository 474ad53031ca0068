import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Limit, type Repository } from "zae-limiter";
import { openRepository } from "zae-limiter/open";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { onEveryBackend } from "./backends.ts";
import { zaeLimiter, type Outcome, type Setup } from "./command-line.ts";
import { manifestFiles, manyEntities } from "./manifest-file.ts";

const manifest = manifestFiles();

const FIRST = {
  system: { on_unavailable: "allow", limits: { rpm: 100 } },
  resources: { "gpt-4": { inherit: true, limits: { tpm: "10000/min:15000" } } },
  entities: {
    acme: { name: "Acme Inc" },
    "key-1": { parent: "acme", resources: { _default_: { limits: { rpm: 500 } } } },
  },
};

/** Another rate for the system, and no more limits of the resource. */
const SECOND = {
  ...FIRST,
  system: { on_unavailable: "allow", limits: { rpm: 200 } },
  resources: {},
};

onEveryBackend((world) => {
  const run = (verb: string, file: string, ...more: readonly string[]): Promise<Outcome> =>
    world.run(["limits", verb, "-f", file, ...more]);

  const apply = (file: string, setup: Setup): Promise<Outcome> =>
    world.run(["limits", "apply", "-f", file], setup);

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
    const auditOf = (what: string): Promise<unknown> => world.json(`audit list ${what}`);
    const audit = [await auditOf("--system"), await auditOf("key-1")];
    const nothing = { code: 0, stderr: "", stdout: "Nothing to change in default: 5 unchanged.\n" };
    for (const verb of ["plan", "diff", "apply"])
      expect(await run(verb, file), verb).toEqual(nothing);
    expect((await world.repository.getProvisionerState()).revision).toBe(revision);
    expect([await auditOf("--system"), await auditOf("key-1")]).toEqual(audit);
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
    // A change of the manifest is none of the store.
    await world.repository.setSystemDefaults([Limit.perMinute("rpm", 100)]);
    expect((await run("diff", manifest(SECOND))).stdout).not.toContain("drift");
  });

  it("--json is the plan as it is declared, with counts, and the report", async () => {
    const file = manifest(FIRST);
    const planned = await run("plan", file, "--json");
    expect(planned).toMatchObject({ code: 3, stderr: "" });
    expect(JSON.parse(planned.stdout)).toMatchObject({
      namespace: "default",
      revision: 0,
      isRegistered: true,
      counts: { create: 5, update: 0, delete: 0, unchanged: 0, drift: 0 },
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
        expect(await namesOf(world.repository)).toEqual(["default"]);
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
      expect(await namesOf(world.repository)).toEqual(["default"]);
    });

    it("is registered by apply, after the confirmation", async () => {
      const file = manifest({ ...FIRST, namespace: "team-a" });
      const words = ["limits", "apply", "-f", file];
      expect(await world.run(words, { typed: "n\n" })).toMatchObject({ code: 1 });
      expect(await namesOf(world.repository)).toEqual(["default"]);
      expect(await world.run(words, { typed: "y\n" })).toMatchObject({ code: 0 });
      expect(await namesOf(world.repository)).toEqual(["default", "team-a"]);
      const team = await world.repository.namespace("team-a");
      expect(await team.getEntity("acme")).toMatchObject({ name: "Acme Inc" });
      expect(await world.repository.getEntity("acme")).toBeUndefined();
    });

    it("is registered by apply also if the manifest declares nothing", async () => {
      const words = ["limits", "apply", "-f", manifest({ namespace: "team-a" })];
      expect(await world.run(words)).toMatchObject({ code: 2 });
      expect(await world.run([...words, "--yes"])).toMatchObject({
        code: 0,
        stdout: "Nothing to change in team-a: 0 unchanged.\n",
      });
      expect(await namesOf(world.repository)).toEqual(["default", "team-a"]);
    });
  });

  describe("apply", () => {
    it("asks, and changes nothing without a yes", async () => {
      const file = manifest(FIRST);
      const unasked = await apply(file, {});
      expect(unasked).toMatchObject({ code: 2, stdout: "" });
      expect(unasked.stderr).toContain(
        "Apply 5 changes to namespace default? This is not running in a terminal, so it cannot " +
          "ask. Pass --yes to confirm.\n",
      );
      const declined = await apply(file, { typed: "n\n" });
      expect(declined).toMatchObject({ code: 1, stdout: "" });
      expect(declined.stderr).toContain("Apply 5 changes to namespace default? [y/N] ");
      expect(await world.repository.getProvisionerState()).toMatchObject({ revision: 0 });
      expect(await apply(file, { typed: "y\n" })).toMatchObject({ code: 0 });
    });

    it("cannot ask when standard input is the manifest", async () => {
      const typed = JSON.stringify({ namespace: "default", ...FIRST });
      const { code, stderr } = await apply("-", { typed });
      expect(code).toBe(2);
      expect(stderr).toContain("Standard input is the manifest, so nobody can answer.");
      expect(
        await world.run(["limits", "apply", "--yes", "-f", "-"], { piped: typed }),
      ).toMatchObject({ code: 0 });
    });

    it("does nothing if what is stored has changed since the plan was shown", async () => {
      async function* answer(): AsyncIterable<string> {
        await world.repository.setSystemDefaults([Limit.perMinute("rpm", 7)]);
        yield "y\n";
      }
      const { code, stdout, stderr } = await apply(manifest(FIRST), { typed: answer() });
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      expect(stderr).toMatch(/ error: Nothing was changed, because .* Plan again\.\n$/);
      expect(await world.repository.getSystemDefaults()).toMatchObject({
        limits: [Limit.perMinute("rpm", 7)],
      });
      expect((await run("plan", manifest(FIRST))).stdout).not.toContain("has not ended");
    });

    it("does nothing if another one was faster than the answer", async () => {
      async function* answer(): AsyncIterable<string> {
        await run("apply", manifest(SECOND), "--yes");
        yield "y\n";
      }
      const { code, stdout, stderr } = await apply(manifest(FIRST), { typed: answer() });
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      expect(stderr).toMatch(
        / error: Another apply to namespace default began meanwhile, so this one has stopped\. .*\n$/,
      );
      expect((await run("plan", manifest(SECOND))).code).toBe(0);
    });

    it("stops between two changes when it is interrupted, and goes on when it is run again", async () => {
      const file = manifest(manyEntities(30, { rpm: 1 }));
      let [calls, interrupt] = [0, (): void => {}];
      const stopped = await zaeLimiter(["limits", "apply", "-f", file, "--yes"], {
        repository: before(world.repository, "setLimits", () => {
          calls += 1;
          if (calls === 5) interrupt();
        }),
        onListening: (listener) => (interrupt = listener),
      });
      expect(stopped).toMatchObject({ code: 1, stdout: "" });
      expect(stopped.stderr).toContain(
        "\nerror: 5 of 30 changes are made. It was stopped: interrupted. " +
          "Applying the manifest again goes on with what is left.\n" +
          "Not changed yet:\n  + create entity key-5 for gpt-4\n",
      );
      expect(stopped.stderr).toMatch(/\n {2}… and 5 more\n$/);
      const planned = await run("plan", file);
      expect(planned.stdout).toMatch(/^An apply that began at 2026-11-15 06:30:00Z has not ended/);
      expect(await run("apply", file, "--yes")).toMatchObject({ code: 0 });
      expect(await run("plan", file)).toMatchObject({ code: 0 });
    });

    it("says what is left when a change fails", async () => {
      const file = manifest(FIRST);
      const broken = before(world.repository, "setLimits", () => {
        throw new Error("It is out of order.");
      });
      const words = ["limits", "apply", "-f", file, "--yes"];
      const failed = await zaeLimiter(words, { repository: broken });
      expect(failed).toMatchObject({ code: 1, stdout: "" });
      expect(failed.stderr).toMatch(
        /\nerror: .*out of order.*\nNot changed yet:\n {2}\+ create entity key-1 for all resources\n$/,
      );
      const { stderr } = await zaeLimiter([...words, "--json"], { repository: broken });
      expect(JSON.parse(stderr)).toMatchObject({
        error: { code: "ERR_LIMITER_APPLY", left: [{ level: "entity", entityId: "key-1" }] },
      });
      expect(await run("apply", file, "--yes")).toMatchObject({
        code: 0,
        stdout: "Applied to default: 1 created, 0 updated, 0 deleted, 4 unchanged.\n",
      });
    });

    it("shows how far it is: on a line, in a log at every tenth, not to programs", async () => {
      const logged = await run("apply", manifest(manyEntities(200, { rpm: 1 })), "--yes");
      expect(logged.stderr).toMatch(/\nApplied 20 of 200 changes\n(Applied .*\n){9}$/);
      expect(logged.stderr).toContain("… and 100 more; limits plan shows all of them.\n");
      const words = ["limits", "apply", "--yes", "-f"];
      const seen = await world.run([...words, manifest(manyEntities(200, { rpm: 2 }))], {
        terminal: true,
      });
      expect(seen.stderr).toContain("\rApplied 2 of 200 changes\u001B[K\rApplied 4 of 200");
      const silent = await run("apply", manifest(manyEntities(200, { rpm: 3 })), "--yes", "--json");
      expect(silent.stderr).toBe("");
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

  const bytes = (): readonly Buffer[] =>
    readdirSync(folder).map((name) => readFileSync(join(folder, name)));

  it.each(["plan", "diff"])("is not created by %s", async (verb) => {
    const { code, stderr } = await run([verb, "-f", manifest(FIRST)]);
    expect(code).toBe(1);
    expect(stderr).toContain(`The database ${folder}/limits.db does not exist`);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("is created by apply, once the plan is agreed to", async () => {
    const words = ["apply", "-f", manifest(FIRST)];
    expect((await run(words)).code).toBe(2);
    const declined = await run(words, { typed: "n\n" });
    expect(declined).toMatchObject({ code: 1, stdout: "" });
    expect(declined.stderr).toContain("Plan for default: 5 to create");
    expect(readdirSync(folder)).toEqual([]);
    expect(await run(words, { typed: "y\n" })).toMatchObject({ code: 0 });
    expect(existsSync(join(folder, "limits.db"))).toBe(true);
  });

  it("gets ten thousand entities, and a plan of them is empty", { timeout: 120_000 }, async () => {
    const file = manifest(manyEntities(10_000, { rpm: 1 }));
    expect((await run(["apply", "-f", file, "--yes"])).stdout).toBe(
      "Applied to default: 10,000 created, 0 updated, 0 deleted, 0 unchanged.\n",
    );
    expect(await run(["plan", "-f", file])).toEqual({
      code: 0,
      stdout: "Nothing to change in default: 10,000 unchanged.\n",
      stderr: "",
    });
  });

  it("stays as it is, byte for byte, when there is nothing to change [W-64]", async () => {
    const words = ["apply", "-f", manifest(FIRST), "--yes"];
    await run(words);
    // Reads, and so merges what the driver may have left in a file of its own.
    await run(["plan", ...words.slice(1, 3)]);
    const stored = bytes();
    expect(await run(words)).toMatchObject({ code: 0 });
    expect(bytes()).toEqual(stored);
  });
});

async function namesOf(repository: Repository): Promise<readonly string[]> {
  return (await repository.listNamespaces()).map(({ name }) => name).toSorted();
}

/** The same repository, but something happens before each call of one method. */
function before(repository: Repository, method: keyof Repository, act: () => void): Repository {
  return new Proxy(repository, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return async (...parameters: readonly unknown[]): Promise<unknown> => {
        if (name === method) act();
        const result: unknown = await member.apply(target, parameters);
        return name === "namespace" ? before(result as Repository, method, act) : result;
      };
    },
  });
}
