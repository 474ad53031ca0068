import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { Limit } from "zae-limiter";
import { openRepository } from "zae-limiter/open";
import { expect, it } from "vitest";
import { temporaryFile } from "../../limiter/test/support/temporary-file.ts";
import { onEveryBackend } from "./backends.ts";
import { zaeLimiter } from "./command-line.ts";

onEveryBackend((world) => {
  const fill = async (): Promise<void> => {
    await world.repository.setSystemDefaults([Limit.parse("tpm:10000/min:15000")]);
    await world.repository.createEntity("org", { metadata: { since: "2026-01-01" } });
    await world.repository.createEntity("key-1", { parentId: "org", cascade: true });
  };
  const yaml = [
    "namespace: default",
    "system:",
    "  inherit: true",
    "  limits:",
    "    tpm: 10000/min:15000",
    "entities:",
    "  key-1:",
    "    parent: org",
    "    cascade: true",
    "  org:",
    "    metadata:",
    '      since: "2026-01-01"',
    "",
  ].join("\n");
  const manifest = {
    namespace: "default",
    system: { inherit: true, limits: { tpm: "10000/min:15000" } },
    entities: {
      "key-1": { parent: "org", cascade: true },
      org: { metadata: { since: "2026-01-01" } },
    },
  };

  it("prints everything that is stored, as YAML or JSON", async () => {
    await fill();
    expect(await world.run("limits export")).toEqual({ code: 0, stdout: yaml, stderr: "" });
    expect(await world.json("limits export")).toEqual(manifest);
    const { stdout } = await world.run("limits export --format json");
    expect(JSON.parse(stdout)).toEqual(manifest);
  });

  it("writes a file in the requested format, or in that of its name", async () => {
    await fill();
    const [file, json] = [temporaryFile("limits.yaml"), temporaryFile("limits.json")];
    expect(await world.run(["limits", "export", "-o", file])).toEqual({
      code: 0,
      stdout: `Wrote ${file}.\n`,
      stderr: "",
    });
    expect(readFileSync(file, "utf8")).toBe(yaml);
    await world.run(["limits", "export", "-o", json]);
    expect(JSON.parse(readFileSync(json, "utf8"))).toEqual(manifest);
    const forced = ["limits", "export", "-o", json, "--format", "yaml", "--force", "--json"];
    expect(JSON.parse((await world.run(forced)).stdout)).toEqual({ file: json });
    expect(readFileSync(json, "utf8")).toBe(yaml);
  });

  it("writes to standard output if the file is called -", async () => {
    await fill();
    const words = ["limits", "export", "-o", "-"];
    expect(await world.run(words)).toEqual({ code: 0, stdout: yaml, stderr: "" });
    expect(JSON.parse((await world.run([...words, "--json"])).stdout)).toEqual(manifest);
    expect(await world.run([...words, "--json", "--format", "yaml"])).toMatchObject({ code: 2 });
    expect(existsSync("-")).toBe(false);
  });

  it("overwrites no file without --force, and reads nothing before it refuses", async () => {
    const file = temporaryFile("limits.yaml");
    writeFileSync(file, "mine");
    const refused = await world.run(["limits", "export", "-o", file], {
      open: () => Promise.reject(new Error("It was opened.")),
    });
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain(`${file} exists. Pass --force to overwrite it`);
    expect(readFileSync(file, "utf8")).toBe("mine");
    expect((await world.run(["limits", "export", "-o", file, "--force"])).code).toBe(0);
    expect(readFileSync(file, "utf8")).toBe("namespace: default\n");
  });

  it("exports the named namespace, and registers none", async () => {
    await world.run("namespace register tenant-a");
    const { stdout } = await world.run("limits export --namespace tenant-a");
    expect(stdout).toBe("namespace: tenant-a\n");
    const missing = await world.run("limits export --namespace tenant-b");
    expect(missing).toMatchObject({ code: 1, stdout: "" });
    expect(missing.stderr).toContain("Did you mean tenant-a?");
    const names = (await world.repository.listNamespaces()).map(({ name }) => name);
    expect(names.toSorted()).toEqual(["default", "tenant-a"]);
  });

  it("writes nothing when it is interrupted", async () => {
    await fill();
    const file = temporaryFile("limits.yaml");
    const outcome = await world.run(["limits", "export", "-o", file], {
      onListening: (interrupt) => interrupt(),
    });
    expect(outcome).toMatchObject({
      code: 1,
      stderr: "error: Interrupted. Nothing was written.\n",
    });
    expect(existsSync(file)).toBe(false);
  });
});

it("shows its progress on a terminal, and clears it", async () => {
  const repository = await openRepository("memory:");
  await repository.setLimits("key-1", [Limit.perMinute("rpm", 1)]);
  const { stdout, stderr } = await zaeLimiter("limits export", { repository, terminal: true });
  expect(stderr).toContain("\r1 entities, 1 levels\u001B[K");
  expect(stderr.endsWith("\r\u001B[K")).toBe(true);
  expect(stdout).toContain("rpm: 1/min\n");
});
