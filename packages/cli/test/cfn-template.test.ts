import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { stackTemplate, templateYaml } from "@zae-limiter/infra";
import { expect, it } from "vitest";
import { temporaryFile } from "../../limiter/test/support/temporary-file.ts";
import { zaeLimiter } from "./command-line.ts";

/** Neither a repository, nor a region, nor credentials. */
const env = { ZAEL_REPOSITORY: "" };

it("prints the template, and needs no repository", async () => {
  expect(await zaeLimiter("cfn-template", { env })).toEqual({
    code: 0,
    stdout: templateYaml(),
    stderr: "",
  });
});

it("prints JSON with --json", async () => {
  const { stdout } = await zaeLimiter("cfn-template --json", { env });
  expect(JSON.parse(stdout)).toEqual(stackTemplate());
});

it("writes a file, and overwrites none unless it is told to", async () => {
  const file = temporaryFile("template.yaml");
  const line = ["cfn-template", "-o", file];
  expect(await zaeLimiter(line, { env })).toMatchObject({ code: 0, stdout: `Wrote ${file}.\n` });
  expect(readFileSync(file, "utf8")).toBe(templateYaml());

  const refused = await zaeLimiter([...line, "--json"], { env });
  expect(refused).toMatchObject({ code: 2, stdout: "" });
  expect(refused.stderr).toContain(`${file} exists. Pass --force to overwrite it`);
  expect(readFileSync(file, "utf8")).toBe(templateYaml());

  await zaeLimiter([...line, "--json", "--force"], { env });
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(stackTemplate());
});

it("says when the folder of the file does not exist", async () => {
  const file = join(temporaryFile("nowhere"), "template.yaml");
  const outcome = await zaeLimiter(["cfn-template", "-o", file], { env });
  expect(outcome).toMatchObject({ code: 2 });
  expect(outcome.stderr).toContain("its folder does not exist");
  expect(existsSync(file)).toBe(false);
});

it.each([
  ["", "--output must be the name of a file."],
  [".", ". is a folder. Name a file in it."],
])("refuses the file '%s'", async (file, message) => {
  const { code, stderr } = await zaeLimiter(["cfn-template", "-o", file, "--force"], { env });
  expect({ code, stderr }).toEqual({ code: 2, stderr: `error: ${message}\n` });
});
