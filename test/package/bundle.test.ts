/*
 * `zae-limiter` and `zae-limiter/memory` in browsers and edge runtimes: they bundle without
 * externals, use no global of Node's, and work where there are only those of the web.
 */
import { createContext, runInContext } from "node:vm";
import { fileURLToPath } from "node:url";
import { build, type BuildResult } from "esbuild";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** What Node has and the web does not. A bundle that names one of them gets the mark instead. */
const NODE_GLOBALS = [
  "process",
  "Buffer",
  "global",
  "require",
  "module",
  "setImmediate",
  "__dirname",
  "__filename",
];
const MARK = "NodeGlobal_";

/** What browsers and edge runtimes have besides the language itself. */
const WEB_GLOBALS = {
  AbortController,
  AbortSignal,
  atob,
  btoa,
  clearTimeout,
  console,
  DOMException,
  performance,
  setTimeout,
  structuredClone,
  TextDecoder,
  TextEncoder,
};

/** A call of every kind, a cursor, and a report of what came of it. */
const PROGRAM = `
  import { Limit, RateLimiter } from "zae-limiter";
  import { MemoryRepository } from "zae-limiter/memory";

  const call = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1, tpm: 500 } };

  globalThis.report = (async () => {
    const repository = new MemoryRepository();
    await repository.setSystemDefaults([Limit.perMinute("rpm", 2), Limit.perHour("tpm", 1000)]);
    const limiter = new RateLimiter({ repository });
    const answer = await limiter.acquire(call, async (lease) => {
      lease.settle({ tpm: 900 });
      return "answer";
    });
    const { granted } = await limiter.tryAcquire(call);
    const fast = { ...call, limits: [Limit.perSecond("rps", 1000)] };
    await limiter.acquire({ ...fast, consume: { rps: 1000 } }, () => undefined);
    const waited = await limiter.acquire({ ...fast, consume: { rps: 1 }, waitUpToMs: 60_000 }, () => "waited");
    for (const id of ["key-1", "key-2"]) await repository.createEntity(id);
    const first = await repository.listEntities({ limit: 1 });
    const second = await repository.listEntities({ limit: 1, cursor: first.cursor });
    const { requests } = await repository.getUsageSummary({ entityId: "key-1" });
    await limiter.close();
    await repository.close();
    return JSON.stringify({ answer, granted, waited, entities: first.items.length + second.items.length, requests });
  })();
`;

it.each(["zae-limiter", "zae-limiter/memory"])(
  "%s bundles for browsers without externals, and names no global of Node's",
  async (entry) => {
    const { metafile, text } = await bundle(`export * from "${entry}";`);
    const reached = Object.keys(metafile!.inputs);
    expect(reached.filter((path) => /dynamodb|sqlite|testing/.test(path))).toEqual([]);
    expect(text.match(new RegExp(`${MARK}\\w+`, "g"))).toBeNull();
    const { text: small } = await bundle(`export * from "${entry}";`, { minify: true });
    console.info(`${entry}: ${Math.round(small.length / 1000)} kB minified`);
  },
);

it("the check finds a global of Node's", async () => {
  const { text } = await bundle("export const bytes = Buffer.from(process.title);");
  expect(text.match(new RegExp(`${MARK}\\w+`, "g"))).toEqual([`${MARK}Buffer`, `${MARK}process`]);
});

it("a bundle works where there are only the globals of the web", async () => {
  const { text } = await bundle(PROGRAM, { minify: true });
  console.info(`a program with both: ${Math.round(text.length / 1000)} kB minified`);
  const context = createContext({ ...WEB_GLOBALS }) as { readonly report?: Promise<string> };
  expect(runInContext("typeof process + typeof Buffer + typeof require", context)).toBe(
    "undefined".repeat(3),
  );
  runInContext(text, context);
  expect(JSON.parse(await context.report!)).toEqual({
    answer: "answer",
    granted: false,
    waited: "waited",
    entities: 2,
    requests: 3,
  });
});

it("zae-limiter/dynamodb bundles for Node, and does not take along what manages stacks", async () => {
  const result = await build({
    stdin: { contents: 'export * from "zae-limiter/dynamodb";', resolveDir: root },
    bundle: true,
    platform: "node",
    format: "esm",
    // The application installs the SDK.
    external: ["@aws-sdk/*"],
    metafile: true,
    write: false,
    logLevel: "silent",
  });
  expect(result.warnings).toEqual([]);
  const reached = Object.keys(result.metafile.inputs);
  expect(reached.filter((path) => /infra\//.test(path))).toEqual([]);
  expect(result.outputFiles[0]!.text).toContain("@zae-limiter/infra");
});

async function bundle(
  program: string,
  { minify = false } = {},
): Promise<BuildResult & { readonly text: string }> {
  const result = await build({
    stdin: { contents: program, resolveDir: root },
    bundle: true,
    platform: "browser",
    format: "iife",
    target: "es2022",
    define: Object.fromEntries(NODE_GLOBALS.map((name) => [name, MARK + name])),
    minify,
    metafile: true,
    write: false,
    logLevel: "silent",
  });
  expect(result.warnings).toEqual([]);
  return { ...result, text: result.outputFiles[0]!.text };
}
