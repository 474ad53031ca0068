/*
 * The example of a team's repository: the guide shows its manifest, and the shell lines of its CI
 * job are run as they stand, with the built command line on a SQLite file. Only `gh` and `npm` are
 * stand-ins, which write down how they were called.
 */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { yamlDocument } from "@zae-limiter/infra/manifest";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const EXAMPLE = `${root}examples/declared-limits`;
const WORKFLOW = ".github/workflows/limits.yml";
const page = readFileSync(`${root}docs/guide/declared-limits.md`, "utf8");

const files = readdirSync(EXAMPLE, { recursive: true, encoding: "utf8" }).filter((name) =>
  statSync(join(EXAMPLE, name)).isFile(),
);

it.each(files.filter((name) => /^(?:ci|\.github)/.test(name)))("the guide links %s", (name) => {
  expect(page).toContain(`(../../examples/declared-limits/${name})`);
});

it.each(files.filter((name) => name.startsWith("limits")))(
  "the guide shows %s as it is",
  (name) => {
    const text = readFileSync(join(EXAMPLE, name), "utf8");
    const shown = [...page.matchAll(/^`(\S+)`\n\n(`{3,4})\w+\n(.*?)^\2$/gms)];
    expect(new Map(shown.map(([, file, , content]) => [file, content])).get(name)).toBe(text);
  },
);

// Its steps are lines of bash.
describe.skipIf(process.platform === "win32")("the CI job", { timeout: 60_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "zae-limiter-example-"));
  const bin = join(folder, "bin");
  const acme = join(folder, "limits/tenants/acme.yaml");

  beforeAll(() => {
    cpSync(EXAMPLE, folder, { recursive: true });
    mkdirSync(bin);
    const cli = `exec '${process.execPath}' '${root}packages/cli/dist/main.js' "$@"`;
    for (const [name, script] of [
      ["zae-limiter", cli],
      ["node", `exec '${process.execPath}' "$@"`],
      ["gh", 'echo "gh $*" >> calls.txt; cp comment.md posted.md'],
      ["npm", 'echo "npm $*" >> calls.txt'],
    ] as const) {
      writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
      chmodSync(join(bin, name), 0o755);
    }
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it("applies what main declares", () => {
    const outcome = runJob("apply");
    expect(outcome.stderr).toContain("Plan for production: 10 to create");
    expect(outcome).toMatchObject({ code: 0 });
    expect(outcome.stdout).toContain("Applied to production: 10 created");
    expect(calls()).toEqual(["npm install --global @zae-limiter/cli"]);
  });

  it("comments what a pull request would change, and passes", () => {
    writeFileSync(acme, readFileSync(acme, "utf8").replace("30000", "45000"));
    expect(runJob("plan")).toMatchObject({ code: 0, stdout: "", stderr: "" });
    expect(calls().at(-1)).toBe(
      "gh pr comment 7 --edit-last --create-if-none --body-file comment.md",
    );
    const comment = readFileSync(join(folder, "posted.md"), "utf8");
    const [, shown] = /<!-- comment -->\n````markdown\n(.*?)````\n/s.exec(page) ?? [];
    expect(comment).toBe(shown);
  });

  it("comments metadata on one line, whatever it holds", () => {
    const unchanged = readFileSync(acme, "utf8");
    writeFileSync(acme, unchanged.replace(/^entities:\n/m, `entities:\n  odd: ${ODD}\n`));
    expect(runJob("plan")).toMatchObject({ code: 0 });
    writeFileSync(acme, unchanged);
    const comment = readFileSync(join(folder, "posted.md"), "utf8");
    expect(comment).toContain("\n+   metadata.a\\n```\\nb: c\\n```\\nd\n");
    expect(comment.match(/^```/gm)).toHaveLength(2);
  });

  it("finds in the morning that what is stored is something else", () => {
    const { code, stdout } = runJob("drift");
    expect(code).toBe(3);
    expect(stdout).toContain("45000/min");
  });

  it("comments metadata that looks like Markdown as one line of the plan", () => {
    const text = "\\n```\\n# Approved";
    const entity = `{name: "n${text}", metadata: {"k${text}": "v${text}"}}`;
    writeFileSync(acme, `namespace: production\nentities: {acme: ${entity}}\n`);
    expect(runJob("plan").code).toBe(0);
    const lines = readFileSync(join(folder, "posted.md"), "utf8").split("\n");
    expect(lines.filter((line) => line.startsWith("```"))).toEqual(["```diff", "```"]);
    expect(lines).toContain(`+   metadata.k${text}: v${text}`);
  });

  it("comments everything that is wrong, and fails", () => {
    writeFileSync(acme, "namespace: production\nentity: {}\nresources: {gpt-4: {}}\n");
    expect(runJob("plan").code).toBe(1);
    const comment = readFileSync(join(folder, "posted.md"), "utf8");
    expect(comment).toMatch(/^\*\*Limits\*\*: the plan failed\.\n\n```text\n/);
    expect(comment).toContain("limits/tenants/acme.yaml:2:1: ");
    expect(comment).toContain("limits/tenants/acme.yaml:3:");
  });

  function calls(): readonly string[] {
    return readFileSync(join(folder, "calls.txt"), "utf8").trimEnd().split("\n");
  }

  /** Runs the shell lines of a job one after the other, as a runner of GitHub would. */
  function runJob(name: string): Outcome {
    let outcome: Outcome = { code: 0, stdout: "", stderr: "" };
    for (const script of listScripts(name)) {
      const { PATH = "", ...env } = process.env;
      const { status, stdout, stderr } = spawnSync("bash", ["-e", "-c", script], {
        cwd: folder,
        encoding: "utf8",
        env: {
          ...env,
          PATH: `${bin}:${PATH}`,
          ZAEL_REPOSITORY: `sqlite:${folder}/limits.db`,
          PULL_REQUEST: "7",
          GH_TOKEN: "token",
        },
      });
      outcome = { code: status, stdout, stderr };
      if (status !== 0) return outcome;
    }
    return outcome;
  }
});

/** An entity whose metadata would end the block of code that shows it. */
const ODD = String.raw`{metadata: {"a\n${"```"}\nb": "c\n${"```"}\nd"}}`;

interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function listScripts(job: string): readonly string[] {
  const text = readFileSync(join(EXAMPLE, WORKFLOW), "utf8");
  const { jobs } = yamlDocument(WORKFLOW, text).content as {
    readonly jobs: Record<string, { readonly steps: readonly { readonly run?: string }[] }>;
  };
  return jobs[job]!.steps.flatMap(({ run }) => run ?? []);
}
