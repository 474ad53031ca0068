import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lambdaPackage } from "@zae-limiter/infra";
import { afterAll, expect, it } from "vitest";
import { zaeLimiter, type Outcome } from "./command-line.ts";

const run = (line: string): Promise<Outcome> => zaeLimiter(line, { env: { ZAEL_REPOSITORY: "" } });

const folder = mkdtempSync(join(tmpdir(), "zae-limiter-export-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("writes the code, and replaces no file unless told to", async () => {
  const output = join(folder, "aggregator.zip");
  const { content, sha256 } = await lambdaPackage("aggregator");
  expect(await run(`lambda-export --output ${output}`)).toMatchObject({ code: 0, stderr: "" });
  expect(readFileSync(output).equals(content)).toBe(true);
  writeFileSync(output, "mine");
  const refused = await run(`lambda-export -o ${output}`);
  expect(refused.code).toBe(2);
  expect(refused.stderr).toBe(
    `error: ${output} exists. Pass --force to overwrite it, or another name.\n`,
  );
  expect(readFileSync(output, "utf8")).toBe("mine");
  const forced = await run(`lambda-export -o ${output} -f --json`);
  expect(JSON.parse(forced.stdout)).toMatchObject({ output, sha256, bytes: content.length });
  expect(readFileSync(output).equals(content)).toBe(true);
});

it("shows what it is with --info, and writes nothing", async () => {
  const { sha256 } = await lambdaPackage("aggregator");
  const { code, stdout } = await run(`lambda-export --info -o ${folder}/nothing.zip`);
  expect(code).toBe(0);
  expect(stdout).toContain(`SHA-256   ${sha256}\n`);
  expect(() => readFileSync(`${folder}/nothing.zip`)).toThrow("ENOENT");
});

it("writes the code of the provisioner with --function [W-64]", async () => {
  const output = join(folder, "provisioner.zip");
  const { content } = await lambdaPackage("provisioner");
  const outcome = await run(`lambda-export --function provisioner -o ${output} --json`);
  expect(JSON.parse(outcome.stdout)).toMatchObject({ name: "provisioner", output });
  expect(readFileSync(output).equals(content)).toBe(true);
  const refused = await run("lambda-export --function limits --info");
  expect(refused).toMatchObject({ code: 2, stdout: "" });
  expect(refused.stderr).toContain("Allowed choices are aggregator, provisioner.");
});

it("says what is wrong with a file that cannot be written", async () => {
  const { code, stderr } = await run(`lambda-export -o ${folder}/missing/a.zip`);
  expect(code).toBe(2);
  expect(stderr).toMatch(
    /^error: .*missing\/a\.zip cannot be written: its folder does not exist\.\n$/,
  );
});
