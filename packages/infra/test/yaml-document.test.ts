import { yamlDocument } from "@zae-limiter/infra/manifest";
import { Limit } from "zae-limiter";
import { ManifestError, readManifest, type ManifestProblem } from "zae-limiter/manifest";
import { describe, expect, it } from "vitest";

const EXAMPLE = `namespace: team-a
resources:
  gpt-4:
    inherit: true
    limits: {rpm: 5, tpm: 100/min}
entities:
  007: {resources: {_default_: {limits: {rpm: 1}}}}
`;

describe("a document", () => {
  it("knows where every key stands, and the entries of a list", () => {
    const document = yamlDocument("limits.yaml", `${EXAMPLE}list: [a, b]\n`);
    expect(document.file).toBe("limits.yaml");
    expect(document.findPosition([])).toEqual({ line: 1, column: 1 });
    expect(document.findPosition(["resources", "gpt-4"])).toEqual({ line: 3, column: 3 });
    expect(document.findPosition(["resources", "gpt-4", "limits", "tpm"])).toEqual({
      line: 5,
      column: 22,
    });
    expect(document.findPosition(["list", 1])).toEqual({ line: 8, column: 11 });
    expect(document.findPosition(["resources", "gpt-5"])).toBeUndefined();
    expect(document.findPosition(["resources", "gpt-4", "inherit", "x"])).toBeUndefined();
    expect(document.findPosition(["constructor"])).toBeUndefined();
  });

  it("keeps the text of a key that looks like a number, and the order of keys", () => {
    const { content } = yamlDocument("a", `${EXAMPLE}x: {null: 1, ~: 2, true: 3, 1e3: 4}`) as {
      readonly content: Record<string, object>;
    };
    expect(Object.keys(content["entities"]!)).toEqual(["007"]);
    expect(Object.keys(content["x"]!)).toEqual(["null", "~", "true", "1e3"]);
  });

  it("reads the types of JSON only, by YAML 1.2", () => {
    const { content } = yamlDocument(
      "a",
      '%YAML 1.1\n---\na: [no, 010, 0x10, 1:30, 2024-01-01, ~, true, 1.5, "5", !!str 5]\n',
    );
    expect(content).toEqual({
      a: ["no", 10, 16, "1:30", "2024-01-01", null, true, 1.5, "5", "5"],
    });
  });

  it("reads digits in groups as a number, as YAML 1.1 does, and neither keys nor quoted texts", () => {
    const { content } = yamlDocument(
      "a",
      `1_0: [10_000, 1_2_3, -1_0, &a 1_0, *a]
b: ["10_000", '10_000', !!str 10_000, 1__0, _10, 10_, 0_10, 1_0/min, 1_a]
`,
    );
    expect(content).toEqual({
      "1_0": [10_000, 123, -10, 10, 10],
      b: ["10_000", "10_000", "10_000", "1__0", "_10", "10_", "0_10", "1_0/min", "1_a"],
    });
  });

  it.each([
    ["JSON with tabs", JSON.stringify({ namespace: "a", system: { limits: {} } }, null, "\t")],
    ["Windows", '\uFEFFnamespace: "a"\r\nsystem:\r\n  limits: {}\r\n'],
  ])("is read with its positions from %s", (_, text) => {
    const document = yamlDocument("a", text);
    expect(document.content).toEqual({ namespace: "a", system: { limits: {} } });
    const isJson = text.startsWith("{");
    expect(document.findPosition(["namespace"])).toEqual(
      isJson ? { line: 2, column: 2 } : { line: 1, column: 1 },
    );
    expect(document.findPosition(["system", "limits"])).toEqual({
      line: isJson ? 4 : 3,
      column: 3,
    });
  });

  it("is null for a file without values", () => {
    for (const text of ["", "# nothing\n", "---\n", "~"])
      expect(yamlDocument("a", text).content).toBeNull();
  });

  it("repeats what an anchor stands for, and merges maps", () => {
    const document = yamlDocument(
      "a",
      `a: &a {limits: &l {rpm: 5}}
b: {<<: *a, inherit: true}
c: {<<: [*l, {rpm: 1, tpm: 2, x: 3}], tpm: 7}
d: *a
e: {"<<": 1}
&k f: *k
`,
    );
    expect(document.content).toEqual({
      a: { limits: { rpm: 5 } },
      b: { limits: { rpm: 5 }, inherit: true },
      c: { rpm: 5, tpm: 7, x: 3 },
      d: { limits: { rpm: 5 } },
      e: { "<<": 1 },
      f: "f",
    });
    expect(document.findPosition(["d"])).toEqual({ line: 4, column: 1 });
    expect(document.findPosition(["d", "limits", "rpm"])).toEqual({ line: 1, column: 20 });
  });

  it("has keys like __proto__ as keys, and changes no prototype", () => {
    const { content } = yamlDocument("a", "__proto__: {polluted: 1}\nconstructor: 2\n");
    expect(Object.entries(content as object)).toEqual([
      ["__proto__", { polluted: 1 }],
      ["constructor", 2],
    ]);
    expect("polluted" in (content as object)).toBe(false);
  });
});

describe("what is not a valid file", () => {
  it.each([
    ["\tnamespace: a", ["1:1: Tabs are not allowed as indentation. Indent with spaces."]],
    [
      "a: 1\na: 2\nb: {c: 1, c: 2, c: 3}",
      [
        "2:1: This key appears twice in one map. Keep one of them.",
        "3:11: This key appears twice in one map. Keep one of them.",
        "3:17: This key appears twice in one map. Keep one of them.",
      ],
    ],
    [
      "a: 1\n---\nb: 2\n---\nc: 3",
      [
        "2:1: The file holds several documents, separated by `---`. Put each of them into a file of its own.",
      ],
    ],
    [
      "a: !limit 5\nb: !!binary abcd\nb: 1",
      [
        "1:4: Unresolved tag: !limit. Leave the tag out: a manifest has none.",
        "2:4: Unresolved tag: tag:yaml.org,2002:binary. Leave the tag out: a manifest has none.",
        "3:1: This key appears twice in one map. Keep one of them.",
      ],
    ],
    ["[a]: 1", ["1:1: A key must be a text. Write a name before the colon, without brackets."]],
    [
      "a: *b\nc: &d [*d]",
      [
        "1:4: There is no anchor '&b' above. Write `&b` before the value that it stands for, in the same file.",
        "2:8: There is no anchor '&d' above. Write `&d` before the value that it stands for, in the same file.",
      ],
    ],
    [
      "<<: 5",
      [
        "1:1: `<<` must be followed by a map, or by a list of maps. Write `<<: *name`, with `&name` before a map above.",
      ],
    ],
    ["a: {b: 1\nc: @d", [expect.stringMatching(/^2:/), expect.stringMatching(/^2:/)]],
    [
      `a: ${"[".repeat(60)}${"]".repeat(60)}`,
      ["1:52: The file is nested too deeply. A manifest has at most seven levels."],
    ],
  ])("%j has every error at its place", (text, expected) => {
    expect(listLines(text)).toEqual(expected);
  });

  it.each([
    ["a:\n\tb: 1", "Indent with spaces."],
    ["a:\n    b: 1\n  c: 2", "Indent all entries of a map by the same number of spaces,"],
    ["a: b: c", "Begin a new line after the first colon, or write the value in quotes."],
    ["a: 'x\nb: 1", "Write the quote that ends the text."],
    ['a: "\\q"', "Write `\\\\` for a backslash, or the text in single quotes."],
    ["namespace a\nsystem: {}", "Write `key: value`, with a space after the colon."],
    ["a: 1\nb", "Write `key: value`, with a space after the colon."],
    ["a: {b: 1\nc: 2", "Close the bracket, or indent what is in it."],
    ["a: {b: - 1}", "Close the bracket before it,"],
    ["a: @d", "Write the value in quotes."],
    ['a: "x"#y', "Write a space before `#`."],
    ["a: *", "Write a name after `&` or `*`,"],
    ["a: &x *y", "Write the alias alone,"],
    ["a: &x &y 1", "Keep one of them."],
    ["%FOO\n---\na: 1", "Leave the line that begins with `%` out."],
    ["a: [1,,2]", "Remove it, or write the whole value in quotes."],
    [`${"x".repeat(1100)}: 1`, "Shorten the key."],
  ])("%j says what to do", (text, suggestion) => {
    const problems = listProblems(() => yamlDocument("a", text));
    expect(problems[0]?.suggestion?.slice(0, suggestion.length)).toBe(suggestion);
    for (const problem of problems) {
      expect(problem.suggestion).toMatch(/^[A-Z].*\.$/);
      expect(problem).toMatchObject({ line: expect.any(Number), column: expect.any(Number) });
    }
  });

  it("is refused however deeply it is nested", () => {
    const lines = listLines(`a: ${"[".repeat(10_000)}`);
    expect(lines).toContainEqual(expect.stringContaining("nested too deeply"));
    expect(lines.length).toBeLessThan(5);
  });

  it("is refused once aliases of aliases are used too often, and not before", () => {
    const bomb = `a: &a [x]\n${tenfold("b", "a")}${tenfold("c", "b")}${tenfold("d", "c")}${tenfold("e", "d")}`;
    expect(listLines(bomb)).toEqual([]);
    const lines = listLines(bomb + tenfold("f", "e") + tenfold("g", "f"));
    expect(lines).toEqual([expect.stringMatching(/^1:1: An alias is used more than 100000 times/)]);
  });
});

it("has problems of its content at the keys that they are about", () => {
  const document = yamlDocument(
    "team/limits.yaml",
    `namespace: team-a
system:
  limits:
    rpm: 10,000
resources:
  gpt-4: {limits: {tpm: {capacity: 5, refilAmount: 5}}}
`,
  );
  expect(() => readManifest([document])).toThrow(
    /^team\/limits\.yaml:4:5: Invalid system\.limits\.rpm: .* Write 10000\.\nteam\/limits\.yaml:6:39: Invalid .* Did you mean refill_amount\?$/,
  );
});

it("has a place for anchors, under keys that begin with x-", () => {
  const text = `namespace: a
x-gold: &gold {limits: {tpm: 5}}
entities:
  acme: {resources: {_default_: *gold}}
  globex: {resources: {_default_: {<<: *gold, inherit: false}}}
`;
  const { entities } = readManifest([yamlDocument("a", text)]).declared;
  const limits = [Limit.perMinute("tpm", 5)];
  expect(entities).toEqual({
    acme: { resources: { _default_: { limits, inherit: true } } },
    globex: { resources: { _default_: { limits, inherit: false } } },
  });
});

function tenfold(name: string, of: string): string {
  return `${name}: &${name} [${Array.from({ length: 10 }, () => `*${of}`).join()}]\n`;
}

/** The errors of a text, without the name of the file. */
function listLines(text: string): readonly string[] {
  return listProblems(() => yamlDocument("a", text)).map(
    ({ line, column, message, suggestion }) =>
      `${line}:${column}: ${message}${suggestion === undefined ? "" : ` ${suggestion}`}`,
  );
}

function listProblems(parse: () => unknown): readonly ManifestProblem[] {
  try {
    parse();
  } catch (error) {
    if (error instanceof ManifestError) return error.problems;
    throw error;
  }
  return [];
}
