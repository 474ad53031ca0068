import { readFileSync } from "node:fs";
import { limitsTemplate, manifestYaml, yamlDocument } from "@zae-limiter/infra/manifest";
import { expect, it } from "vitest";
import { readManifest } from "zae-limiter/manifest";
import { zaeLimiter, type Outcome } from "./command-line.ts";
import { manifestFiles } from "./manifest-file.ts";

const manifest = manifestFiles();
const FIRST = { system: { limits: { rpm: 100 } }, entities: { acme: { name: "Acme Inc" } } };

/** Neither a repository, nor a region, nor credentials. */
const run = (...line: readonly string[]): Promise<Outcome> =>
  zaeLimiter(["limits", "cfn-template", ...line], { env: { ZAEL_REPOSITORY: "" } });

function readTemplate(file: string, stack = "zae-limiter"): ReturnType<typeof limitsTemplate> {
  const read = readManifest([yamlDocument(file, readFileSync(file, "utf8"))]);
  return limitsTemplate(read, { stack });
}

it("prints a template for the stack, and needs no repository", async () => {
  const file = manifest(FIRST);
  const stdout = manifestYaml(readTemplate(file));
  expect(await run("-f", file)).toEqual({ code: 0, stdout, stderr: "" });
  expect(stdout).toContain("Fn::ImportValue: zae-limiter-ProvisionerArn\n");
  const named = await run("-f", file, "--stack", "limits", "--json");
  expect(JSON.parse(named.stdout)).toEqual(readTemplate(file, "limits"));
});

it("says what is wrong with the manifest, the namespace or the stack, and prints nothing", async () => {
  const wrong = manifest({ system: { limits: { rpm: -5 } } });
  expect(await run("-f", wrong)).toMatchObject({ code: 2, stdout: "" });
  const file = manifest(FIRST);
  const other = await run("-f", file, "--namespace", "team-b");
  expect(other).toMatchObject({ code: 2, stdout: "" });
  expect(other.stderr).toContain("The manifest is about the namespace default");
  const unnamed = await run("-f", file, "--stack", "a_b");
  expect(unnamed).toMatchObject({ code: 2, stdout: "" });
  expect(unnamed.stderr).toContain("must begin with a letter");
  const long = await run("-f", file, "--stack", "x".repeat(46));
  expect(long).toMatchObject({ code: 2, stdout: "" });
  expect(long.stderr).toContain("must have at most 45 characters");
});

it("says what a large template needs, and refuses one that cannot be deployed", async () => {
  const inBucket = await run("-f", manifest(withBytes(60_000)));
  expect(inBucket).toMatchObject({ code: 0 });
  expect(inBucket.stderr).toMatch(
    /^note: CloudFormation takes 51,200 bytes in a request, and the template has 102,\d{3}\. Deploy it from a bucket\.\n$/,
  );
  const inEvent = await run("-f", manifest(withBytes(150_000)));
  expect(inEvent).toMatchObject({ code: 0 });
  expect(inEvent.stderr).toMatch(/\nnote: An update would send 30\d,\d{3} bytes .*limits apply/);
  const never = await run("-f", manifest(withBytes(1_100_000)));
  expect(never).toMatchObject({ code: 2, stdout: "" });
  expect(never.stderr).toMatch(/ and CloudFormation takes 1,048,576\. Apply .* limits apply\.\n$/);
});

/** Entities with about so many bytes of metadata. */
function withBytes(bytes: number): object {
  const metadata = Object.fromEntries(
    Array.from({ length: 50 }, (_, index) => [`field-${index}`, "x".repeat(1000)]),
  );
  const ids = Array.from({ length: Math.ceil(bytes / 51_000) }, (_, index) => `key-${index}`);
  return { entities: Object.fromEntries(ids.map((id) => [id, { metadata }])) };
}
