import { Limit, type Repository } from "zae-limiter";
import { openRepository } from "zae-limiter/open";
import { expect, it } from "vitest";
import { onEveryBackend } from "./backends.ts";
import { zaeLimiter, type Outcome, type Setup } from "./command-line.ts";
import { FIRST, manifestFiles, manyEntities, SECOND } from "./manifest-file.ts";

const manifest = manifestFiles();

onEveryBackend((world) => {
  const run = (verb: string, file: string, ...more: readonly string[]): Promise<Outcome> =>
    world.run(["limits", verb, "-f", file, ...more]);
  const apply = (file: string, setup: Setup): Promise<Outcome> =>
    world.run(["limits", "apply", "-f", file], setup);

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
    expect(stderr).toContain("Standard input is the manifest, so it cannot answer.");
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
      / error: Another apply to namespace default started meanwhile, so this one has stopped\. .*\n$/,
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
      "\nerror: Applied 5 of 30 changes. It was stopped: interrupted. " +
        "Applying the manifest again continues with what is left.\n" +
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
    const logged = await run("apply", manifest(manyEntities(120, { rpm: 1 })), "--yes");
    expect(logged.stderr).toMatch(/\nApplied 12 of 120 changes\n(Applied .*\n){9}$/);
    expect(logged.stderr).toContain("… and 20 more; limits plan shows all of them.\n");
    const words = ["limits", "apply", "--yes", "-f"];
    const seen = await world.run([...words, manifest(manyEntities(120, { rpm: 2 }))], {
      terminal: true,
    });
    expect(seen.stderr).toContain("\rApplied 2 of 120 changes\u001B[K\rApplied 3 of 120");
    const silent = await run("apply", manifest(manyEntities(120, { rpm: 3 })), "--yes", "--json");
    expect(silent.stderr).toBe("");
  });
});

it("ten thousand entities are applied, and planned again", { timeout: 120_000 }, async () => {
  const repository = await openRepository("memory:");
  const words = ["-f", manifest(manyEntities(10_000, { rpm: 1 }))];
  expect(await zaeLimiter(["limits", "apply", "--yes", ...words], { repository })).toMatchObject({
    code: 0,
    stdout: "Applied to default: 10,000 created, 0 updated, 0 deleted, 0 unchanged.\n",
  });
  expect(await zaeLimiter(["limits", "plan", ...words], { repository })).toEqual({
    code: 0,
    stdout: "Nothing to change in default: 10,000 unchanged.\n",
    stderr: "",
  });
  await repository.close();
});

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
