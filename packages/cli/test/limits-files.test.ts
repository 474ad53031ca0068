// The files that `--file` stands for, and the errors about them.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { MemoryRepository } from "zae-limiter/memory";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { zaeLimiter, type Outcome, type Setup } from "./command-line.ts";

let folder: string;
let repository: MemoryRepository;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "zae-limiter-files-"));
  repository = new MemoryRepository();
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return path;
}

/** A file that declares one resource. */
function writeResource(name: string, resource: string): string {
  return write(name, `resources:\n  ${resource}: {limits: {rpm: 1}}\n`);
}

/** Plans, with paths as if the test stood in its folder. */
async function plan(words: readonly string[], setup: Setup = {}): Promise<Outcome> {
  const outcome = await zaeLimiter(["limits", "plan", ...words], { repository, ...setup });
  return { ...outcome, stderr: outcome.stderr.replaceAll(`${folder}/`, "") };
}

/** The resources that files declare, in the order of the files. */
async function listResources(words: readonly string[], setup: Setup = {}): Promise<unknown> {
  const { stdout, stderr } = await plan([...words, "--json"], setup);
  expect(stderr).toBe("");
  const { entries } = JSON.parse(stdout) as { entries: readonly { resource?: string }[] };
  return entries.map(({ resource }) => resource).filter((name) => name !== undefined);
}

describe("files of a manifest", () => {
  let base: string;
  beforeEach(() => {
    base = write("base.yaml", "namespace: default\n");
  });

  it("are given together, one by one, or both", async () => {
    const [a, b] = [writeResource("a.yaml", "a"), writeResource("b.json", "b")];
    expect(await listResources(["-f", base, a, b])).toEqual(["a", "b"]);
    expect(await listResources(["-f", base, "--file", a, "-f", b])).toEqual(["a", "b"]);
  });

  it("are all YAML and JSON files of a folder and of those in it", async () => {
    writeResource("more/2.yml", "two");
    writeResource("more/1.yaml", "one");
    writeResource("more/deep/er/3.json", "three");
    for (const other of ["more/.hidden.yaml", "more/.git/a.yaml", "more/node_modules/a/a.yaml"])
      writeResource(other, "hidden");
    write("more/README.md", "# Not a manifest");
    expect(await listResources(["-f", base, join(folder, "more/")])).toEqual([
      "one",
      "two",
      "three",
    ]);
  });

  it("are YAML whatever their names are, if they are named", async () => {
    const text = writeResource("limits.txt", "text");
    const hidden = writeResource(".limits", "hidden");
    expect(await listResources(["-f", base, text, hidden])).toEqual(["text", "hidden"]);
  });

  it("are read once, however often and by whatever names they are given", async () => {
    const file = writeResource("more/a.yaml", "a");
    symlinkSync(file, join(folder, "more/link.yaml"));
    symlinkSync(join(folder, "more"), join(folder, "more/loop"));
    const names = [file, relative(process.cwd(), file), join(folder, "more"), `${folder}/more/`];
    expect(await listResources(["-f", base, ...names])).toEqual(["a"]);
  });

  it("come from standard input, once", async () => {
    const piped = "namespace: default\nresources: {p: {limits: {rpm: 1}}}\n";
    expect(await listResources(["-f", "-"], { piped })).toEqual(["p"]);
    expect(await listResources(["-f", "-", "-"], { piped: Buffer.from(piped) })).toEqual(["p"]);
  });

  it("may begin with a byte order mark", async () => {
    const file = write(
      "bom.yaml",
      "\uFEFFnamespace: default\nresources: {b: {limits: {rpm: 1}}}\n",
    );
    expect(await listResources(["-f", file])).toEqual(["b"]);
  });
});

describe("what is wrong", () => {
  const unopened: Setup = { open: () => Promise.reject(new Error("It was opened.")) };

  it("is said of all files at once, with the places, before a repository is opened", async () => {
    write("bad/keys.yaml", "namespace: default\nsystem:\n  limit: {rpm: 1}\nresource: {}\n");
    write("bad/latin.yaml", Buffer.from("name: caf\xE9", "latin1"));
    write("bad/syntax.yaml", "a: [1\nb: 2\n");
    mkdirSync(join(folder, "empty/node_modules"), { recursive: true });
    const names = ["bad", "empty", "missing.yaml", "bad/keys.yaml/x"];
    const words = ["-f", ...names.map((name) => join(folder, name))];
    const { code, stdout, stderr } = await plan(words, unopened);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    const lines = stderr.trimEnd().split("\n");
    expect(lines).toContain("empty: The folder has no file *.yaml, *.yml or *.json.");
    expect(lines).toContain("missing.yaml: There is no such file.");
    expect(lines).toContain("bad/keys.yaml/x: There is no such file.");
    expect(lines).toContain("bad/latin.yaml: It is not text in UTF-8.");
    expect(stderr).toMatch(/^bad\/syntax\.yaml:\d+:\d+: .+/m);
    expect(stderr).toMatch(/^bad\/keys\.yaml:3:3: .*limits/m);
    expect(stderr).toMatch(/^bad\/keys\.yaml:4:1: .*resources/m);
    expect(
      lines.every((line) => /^\S+: .+[.?]$/.test(line)),
      stderr,
    ).toBe(true);
  });

  it("is an object with all problems for programs", async () => {
    const file = write("bad.yaml", "namespace: default\nresource: {}\n");
    const { code, stdout, stderr } = await plan(["-f", file, `${folder}/no`, "--json"], unopened);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(JSON.parse(stderr)).toEqual({
      error: {
        code: "ERR_LIMITER_MANIFEST",
        message: expect.stringContaining("bad.yaml"),
        problems: [
          { file: "no", path: "", message: "There is no such file." },
          {
            file: "bad.yaml",
            line: 2,
            column: 1,
            path: "resource",
            message: expect.any(String),
            suggestion: expect.stringContaining("resources"),
          },
        ],
      },
    });
  });

  it("is not that the namespace is missing, if it may be in a file that cannot be read", async () => {
    const file = writeResource("a.yaml", "a");
    expect((await plan(["-f", file], unopened)).stderr).toContain("namespace");
    const { stderr } = await plan(["-f", file, `${folder}/no.yaml`], unopened);
    expect(stderr).toBe("no.yaml: There is no such file.\n");
  });

  it("names standard input", async () => {
    const { stderr } = await plan(["-f", "-"], { piped: "namespace: default\nx: 1\n" });
    expect(stderr).toMatch(/^<stdin>:2:1: /);
  });

  it("is a file that cannot be read", async () => {
    // Root may read everything except the beginning of this.
    if (process.platform !== "linux") return;
    const { code, stderr } = await plan(["-f", "/proc/self/mem"], unopened);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(/^\/proc\/self\/mem: It cannot be read: .*\.\n$/),
    });
  });

  it("is an empty name, as of a variable that is not set", async () => {
    const file = writeResource("a.yaml", "a");
    for (const words of [
      ["-f", ""],
      ["-f", file, ""],
      ["-f", file, "--file="],
    ])
      expect(await plan(words, unopened)).toMatchObject({
        code: 2,
        stdout: "",
        stderr: expect.stringMatching(
          / is invalid\. It must be the name of a file or a folder\.\n/,
        ),
      });
  });

  it.each(["plan", "diff", "apply"])("is that %s gets no file", async (verb) => {
    const { code, stderr } = await zaeLimiter(["limits", verb], unopened);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining("required option '-f, --file <file...>'"),
    });
  });
});
