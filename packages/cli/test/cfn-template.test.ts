import { stackTemplate, templateYaml } from "@zae-limiter/infra";
import { expect, it } from "vitest";
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

it.each([
  ["", "--output must be the name of a file."],
  [".", ". is a folder. Name a file in it."],
])("refuses the file '%s'", async (file, message) => {
  const { code, stderr } = await zaeLimiter(["cfn-template", "-o", file, "--force"], { env });
  expect({ code, stderr }).toEqual({ code: 2, stderr: `error: ${message}\n` });
});
