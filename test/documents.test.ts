import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

const documents = [
  "",
  ".github/",
  "docs/",
  "docs/guide/",
  "docs/guide/recipes/",
  "docs/adr/",
  "bench/",
  "packages/limiter/src/repository/dynamodb/transport/lean/",
  "packages/cli/",
  "examples/agent-budget/",
  "examples/chat-server/",
  "examples/gateway/",
  "examples/local-provider/",
].flatMap((folder) =>
  readdirSync(root + folder)
    .filter((name) => name.endsWith(".md"))
    .map((name) => folder + name),
);

const decisions = documents.filter((path) => /^docs\/adr\/\d/.test(path));

it.each(documents)("%s links only to what exists", (path) => {
  const links = [...read(path).matchAll(/\]\((?!https?:|#)([^)#]+)[^)]*\)/g)].map(
    ([, target = ""]) => target,
  );
  const base = dirname(path);
  expect(links.filter((target) => !existsSync(join(root, base, target)))).toEqual([]);
});

it.each(documents)("%s links only to headings that exist", (path) => {
  const base = dirname(path);
  const links = [...read(path).matchAll(/\]\((?!https?:)([^)#]*)#([^)]+)\)/g)];
  const wrong = links.filter(([, target = "", anchor = ""]) => {
    const page = target === "" ? path : join(base, target);
    return !listAnchors(read(page)).includes(anchor);
  });
  expect(wrong.map(([link]) => link)).toEqual([]);
});

it.each(documents)("%s names only files of the repository that exist", (path) => {
  const named = [
    ...read(path).matchAll(/`((?:packages|test|tools|examples|docs)\/[\w./-]+)`/g),
  ].map(([, target = ""]) => target);
  expect(named.filter((target) => !existsSync(root + target))).toEqual([]);
});

it("a decision record is listed under its number, with the former numbers that it folds", () => {
  const rows = [
    ...read("docs/adr/README.md").matchAll(/^\| \[(\d{3})\]\(([\w-]+\.md)\) .*\| ([\d, ]*)\|$/gm),
  ];
  expect(rows.map(([, number, page]) => [number, `docs/adr/${page}`])).toEqual(
    decisions.map((path, index) => [String(index + 1).padStart(3, "0"), path]),
  );
  const folded = rows.flatMap(([, , , former = ""]) => former.match(/\d+/g) ?? []).map(Number);
  const all = Array.from({ length: 69 }, (_, index) => index + 1).filter((former) => former !== 12);
  expect([...new Set(folded)].toSorted((a, b) => a - b)).toEqual(all);
});

/** Codes of errors that are values inside, and become others before a caller sees them. */
const INSIDE = [
  "ERR_LIMITER_CONDITION_FAILED",
  "ERR_LIMITER_TRANSACTION_CANCELLED",
  "ERR_LIMITER_UNREADABLE_ANSWER",
  "ERR_LIMITER_UNSENT",
];

it("the guide explains every error code, and every code of a warning", () => {
  const sources = ["limiter", "infra"].flatMap((name) => {
    const folder = `packages/${name}/src/`;
    return readdirSync(root + folder, { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"))
      .map((path) => read(folder + path));
  });
  const codes = new Set(sources.join("\n").match(/(?:ERR|WARN)_LIMITER_[A-Z_]+[A-Z]/g));
  const explained = read("docs/guide/errors.md");
  const missing = [...codes].filter((code) => !explained.includes(`\`${code}\``));
  expect(missing.toSorted()).toEqual(INSIDE);
});

it("the guide's index leads to every page", () => {
  const index = read("docs/guide/index.md");
  const pages = documents.filter(
    (path) => path.startsWith("docs/guide/") && !path.endsWith("index.md"),
  );
  expect(pages.filter((path) => !index.includes(`](${path.slice("docs/guide/".length)})`))).toEqual(
    [],
  );
});

describe("the guide tells of every", () => {
  const guide = documents
    .filter((path) => path.startsWith("docs/guide/"))
    .map(read)
    .join("\n");

  it.each([
    ["repository/models.ts", "RepositoryOptions"],
    ["repository/models.ts", "RepositoryStatistics"],
    ["repository/dynamodb/opening/options.ts", "DynamoOptions"],
    ["repository/dynamodb/transport/lean/lean-transport.ts", "LeanTransportOptions"],
    ["repository/sqlite/sqlite-repository.ts", "SqliteOptions"],
    ["http/options.ts", "HttpLimitOptions<Q>"],
    ["http/listener.ts", "ListenerOptions<Q>"],
    ["http/headers/options.ts", "HeaderOptions"],
    ["http/identity/client-address.ts", "AddressOptions"],
    ["stores/options.ts", "StoreOptions"],
    ["otel/instrument.ts", "OtelOptions"],
    ["llm/upstream/upstream-mirror.ts", "UpstreamMirror"],
    ["diagnostics/messages.ts", "AcquireMessage"],
    ["diagnostics/messages.ts", "EndMessage"],
    ["diagnostics/messages.ts", "ChargeMessage"],
    ["diagnostics/messages.ts", "StreamMessage"],
    ["llm/options.ts", "MeteredOptions<C>"],
    ["llm/fetch/limit-fetch.ts", "FetchOptions"],
    ["llm/estimating/simple-estimator.ts", "SimpleEstimatorOptions"],
    ["llm/estimating/learning-estimator.ts", "LearningEstimatorOptions"],
    ["llm/tokens/metered-record.ts", "MeteredRecord"],
    ["llm/tokens/token-usage.ts", "TokenUsage"],
    ["llm/tokens/llm-call.ts", "LlmCall"],
    ["llm/upstream/upstream-mirror.ts", "UpstreamMirror"],
  ])("field, in %s, of %s", (file, name) => {
    const source = read(`packages/limiter/src/${file}`);
    const [, body = ""] =
      new RegExp(`^export interface ${name} [^{]*\\{\n(.*?)^\\}`, "ms").exec(source) ?? [];
    const fields = [...body.matchAll(/^  readonly (\w+)\??:/gm)].map(([, field]) => field!);
    expect(fields).not.toEqual([]);
    expect(
      fields.filter((field) => !new RegExp(`\`(?:options\\.)?${field}\\b`).test(guide)),
    ).toEqual([]);
  });
});

it("the guide tells of every instrument and every attribute of telemetry", () => {
  const [metrics, stores, attributes] = ["metrics", "store-counters", "attributes"].map((name) =>
    read(`packages/limiter/src/otel/${name}.ts`),
  ) as [string, string, string];
  const names = [
    ...[...metrics.matchAll(/(?:histogram|counter)\(\s*"([\w.]+)"/g)].map(
      ([, name]) => `zae_limiter.${name}`,
    ),
    ...[...metrics.matchAll(/"(zae_limiter[\w.]+)"/g)].map(([, name]) => name!),
    ...[...stores.matchAll(/^  \["(\w+)"/gm)].map(([, name]) => `zae_limiter.store.${name}`),
    ...[...attributes.matchAll(/^  \w+: "([\w.]+)",$/gm)].map(([, key]) => key!),
  ];
  expect(names.length).toBe(11 + 7 + 13);
  const page = read("docs/guide/telemetry.md");
  expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});

/** The anchors of a page's headings: in small letters, without punctuation, spaces as hyphens. */
function listAnchors(page: string): readonly string[] {
  return [...page.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

function read(path: string): string {
  return readFileSync(root + path, "utf8");
}
