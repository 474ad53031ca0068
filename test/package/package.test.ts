/*
 * A new user's path, from an empty folder: the packages are packed and installed by npm, from a
 * registry on this machine, and used as their README says.
 */
import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { node24 } from "../../tools/fetch-packages.mjs";
import { describeWithEngine, freshTableName } from "../../packages/limiter/test/support/engine.ts";
import {
  refuse,
  startScriptedServer,
} from "../../packages/limiter/test/support/scripted-server.ts";
import { startGateway, untilRefused } from "../support/gateway-process.ts";
import { startProvider, type Provider } from "../../examples/local-provider/provider.ts";
import { availableOrSkipped } from "./available.ts";
import { toOutcome, Project, type Outcome } from "./project.ts";
import { startRegistry, type Registry } from "./registry.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const TIMEOUT_MS = 120_000;

const newerNode = availableOrSkipped("Node 24", node24);
const nodes: readonly (readonly [string, string])[] = [
  ["this Node", process.execPath],
  ...(newerNode === undefined ? [] : [["Node 24", newerNode] as const]),
];

const { exports, version } = JSON.parse(
  readFileSync(join(root, "packages/limiter/package.json"), "utf8"),
) as { readonly exports: object; readonly version: string };
const entries = Object.keys(exports).map((entry) => entry.replace(".", "zae-limiter"));

const SERVERS = ["express", "@types/express", "hono", "@hono/node-server"];

let folder: string;
let registry: Registry;
let provider: Provider;
/** Has the library alone. */
let library: Project;
/** The library was installed first, then the command line and what recipes need. */
let libraryFirst: Project;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "new-user-"));
  provider = await startProvider();
  registry = await startRegistry(await pack(), {
    modules: join(root, "node_modules"),
    folder: join(folder, "registry"),
  });
  library = await projectWith("library", ["zae-limiter"]);
  libraryFirst = await projectWith(
    "library-first",
    ["zae-limiter"],
    ["@zae-limiter/cli", "@types/node", ...SERVERS, "openai"],
  );
}, TIMEOUT_MS);

afterAll(async () => {
  await registry?.stop();
  await provider?.stop();
  rmSync(folder, { recursive: true, force: true });
}, TIMEOUT_MS);

describe("the library, installed alone", { timeout: TIMEOUT_MS }, () => {
  it("brings no other package", () => {
    expect(listPackages(library)).toEqual(["zae-limiter"]);
  });

  it.each(nodes)("loads every entry by import and by require on %s", async (_, node) => {
    const names = JSON.stringify(entries.filter((entry) => !/\.json$|\/otel$/.test(entry)));
    const program = `const { createRequire } = await import("node:module");
      const require = createRequire(process.cwd() + "/program.js");
      for (const name of ${names}) {
        const [one, other] = [Object.keys(require(name)), Object.keys(await import(name))];
        if (one.length === 0 || String(one) !== String(other)) throw new Error(name);
      }
      const { title } = require("zae-limiter/limits.schema.json");
      console.log(require("zae-limiter/package.json").version, title);`;
    expect(await library.run(node, "--input-type=module", "-e", program)).toEqual({
      code: 0,
      stdout: `${version} Declared limits of zae-limiter\n`,
      stderr: "",
    });
  });

  it.each(nodes)("says what telemetry needs, by import and by require on %s", async (_, node) => {
    const program = `const { createRequire } = await import("node:module");
      const require = createRequire(process.cwd() + "/program.js");
      for (const load of [() => import("zae-limiter/otel"), async () => require("zae-limiter/otel")])
        await load().catch(({ code, message }) => console.log(code, message));`;
    const sentence =
      "ERR_LIMITER_CLIENT_MISSING zae-limiter/otel needs the API of OpenTelemetry: npm install @opentelemetry/api\n";
    expect(await library.run(node, "--input-type=module", "-e", program)).toEqual({
      code: 0,
      stdout: sentence + sentence,
      stderr: "",
    });
  });

  it("has a command that says what to install", async () => {
    const { code, stdout, stderr } = await library.run("npx", "zae-limiter", "--version");
    expect(stderr).toMatch(/^The command line is .*: npm install @zae-limiter\/cli\n$/);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  });
});

describe("what is in the packages", () => {
  it("maps every script to a source that the map contains", () => {
    const installed = join(libraryFirst.folder, "node_modules");
    for (const name of ["zae-limiter", "@zae-limiter/cli"]) {
      const files = filesUnder(join(installed, name, "dist"));
      const scripts = files.filter((path) => path.endsWith(".js"));
      expect(scripts.length).toBeGreaterThan(20);
      for (const script of scripts) {
        const path = join(installed, name, "dist", script);
        expect(readFileSync(path, "utf8")).toMatch(/\n\/\/# sourceMappingURL=\S+\.js\.map\s*$/);
        const map = JSON.parse(readFileSync(`${path}.map`, "utf8")) as {
          readonly sources: readonly string[];
          readonly sourcesContent?: readonly string[];
        };
        expect(map.sources, script).toHaveLength(1);
        const source = join(root, "packages", name === "zae-limiter" ? "limiter" : "cli", "src");
        expect(map.sourcesContent, script).toEqual([
          readFileSync(join(source, script.replace(/\.js$/, ".ts")), "utf8"),
        ]);
      }
      expect(files.filter((path) => /\.d\.ts\.map$|\.tsbuildinfo$/.test(path))).toEqual([]);
      expect(files.some((path) => path.endsWith(".d.ts"))).toBe(name === "zae-limiter");
    }
  });

  it("has the whole guide, and no page leads to what is not in the package", () => {
    const installed = join(libraryFirst.folder, "node_modules/zae-limiter");
    const files = filesUnder(installed);
    const guide = filesUnder(join(root, "docs/guide")).filter((path) => path.endsWith(".md"));
    expect(files).toEqual(expect.arrayContaining(guide.map((path) => `docs/guide/${path}`)));
    const pages = files.filter((path) => path.endsWith(".md"));
    const links = pages.flatMap((page) =>
      [...readFileSync(join(installed, page), "utf8").matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(
        ([, target]) => normalize(join(dirname(page), target!)),
      ),
    );
    expect(links.length).toBeGreaterThan(50);
    expect(links.filter((target) => !files.includes(target))).toEqual([]);
    expect(links).toContain("docs/guide/index.md");
  });

  it("names no address that does not exist yet", () => {
    for (const name of ["zae-limiter", "@zae-limiter/cli"]) {
      const path = join(libraryFirst.folder, "node_modules", name, "package.json");
      const manifest = JSON.parse(readFileSync(path, "utf8")) as { readonly keywords: string[] };
      expect(manifest).not.toHaveProperty("repository");
      expect(manifest).not.toHaveProperty("homepage");
      expect(manifest.keywords.length).toBeGreaterThan(5);
    }
  });
});

/** The server of the README answers one request, and ends, so that the program does. */
const ASKED_ONCE = `const server = app.listen(0, async () => {
  const { port } = server.address() as { port: number };
  const { status, headers } = await fetch("http://localhost:" + port);
  console.log(status, headers.get("ratelimit"));
  server.close().closeAllConnections();
});`;

describe("the README of the package", { timeout: TIMEOUT_MS }, () => {
  beforeAll(async () => {
    const readme = readFileSync(
      join(libraryFirst.folder, "node_modules/zae-limiter/README.md"),
      "utf8",
    );
    const program = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)]
      .map(([, code]) => code)
      .join("\n")
      .replace("app.listen(3000);", ASKED_ONCE);
    const imports = program.match(/^import [^;]+;$/gm)?.join("\n") ?? "";
    const rest = program.replaceAll(/^import [^;]+;$/gm, "");
    expect(imports).toContain('from "zae-limiter"');
    writeFileSync(join(libraryFirst.folder, "readme.mts"), program);
    // A CommonJS module cannot await at its top.
    writeFileSync(
      join(libraryFirst.folder, "readme-by-require.cts"),
      `${imports}\nasync function main() {\n${rest}\n}\nvoid main();\n`,
    );
    await libraryFirst.compile("readme.mts", "readme-by-require.cts");
    expect(readFileSync(join(libraryFirst.folder, "readme-by-require.cjs"), "utf8")).toContain(
      'require("zae-limiter")',
    );
  }, TIMEOUT_MS);

  it.each(nodes)("runs as an ES module and by require on %s", async (_, node) => {
    for (const program of ["readme.mjs", "readme-by-require.cjs"]) {
      const { code, stdout, stderr } = await libraryFirst.run(node, program);
      expect({ program, code, stderr }).toEqual({ program, code: 0, stderr: "" });
      expect(stdout).toContain("A bucket holds tokens");
      expect(stdout).toMatch(/^Retry-After: [1-9]\d*$/m);
      expect(stdout).toMatch(/^200 "rpm";r=\d+/m);
    }
  });
});

describe("the gateway of the recipes", { timeout: TIMEOUT_MS }, () => {
  it("streams an answer, settles it, and refuses with 429 and a time to retry", async () => {
    copyFileSync(
      join(root, "examples/recipes/hono-gateway.ts"),
      join(libraryFirst.folder, "gateway.mts"),
    );
    await libraryFirst.compile("gateway.mts");
    const gateway = await startGateway("gateway.mjs", {
      cwd: libraryFirst.folder,
      env: provider.environment,
    });
    try {
      const client = new AbortController();
      const answer = await gateway.ask("key-ann", "Write slowly.", client.signal);
      // The provider never sends the rest, so these words were not held back for it.
      expect(await textUntil("holds ", answer)).toBe("A bucket holds ");
      client.abort();
      expect(await gateway.nextLine()).toMatch(/^key-ann: 200, \d+ tokens$/);
      const refused = await untilRefused(gateway);
      expect(refused.status).toBe(429);
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(await refused.json()).toMatchObject({ "violated-policies": ["rpm"] });
    } finally {
      await gateway.stop();
    }
  });
});

describe("a backend of one's own", { timeout: TIMEOUT_MS }, () => {
  it("compiles and keeps the contract, with nothing but the packages", async () => {
    const project = await projectWith("backend", [
      "zae-limiter",
      "@zae-limiter/contract",
      "@types/node",
    ]);
    const example = join(root, "examples/own-backend");
    const files = readdirSync(example).filter((name) => name.endsWith(".ts"));
    for (const name of files) {
      const source = readFileSync(join(example, name), "utf8").replace('"vitest"', '"node:test"');
      writeFileSync(join(project.folder, name.replace(".ts", ".mts")), withModuleNames(source));
    }
    await project.compile(...files.map((name) => name.replace(".ts", ".mts")));
    const { code, stdout } = await project.run(process.execPath, "map-repository.test.mjs");
    expect(stdout).toMatch(/# pass [1-9]\d\d/);
    expect({ code, failed: /# fail (\d+)/.exec(stdout)?.[1] }).toEqual({ code: 0, failed: "0" });
  });
});

describe("a stack that is missing, without @zae-limiter/infra", { timeout: TIMEOUT_MS }, () => {
  it("has an instruction instead", async () => {
    const infra = join(libraryFirst.folder, "node_modules/@zae-limiter/infra");
    const server = await startScriptedServer();
    server.answer = (outgoing) => refuse(outgoing, "ResourceNotFoundException");
    renameSync(infra, `${infra}-elsewhere`);
    try {
      const program = `import { DynamoRepository } from "zae-limiter/dynamodb";
        const options = { region: "eu-west-1", endpointUrl: process.argv[1], provisioning: "stack" };
        await DynamoRepository.open("my-team", options).catch((error) => console.log(error.code, error.message));`;
      const { stdout } = await libraryFirst.run(
        process.execPath,
        "--input-type=module",
        "-e",
        program,
        server.endpointUrl,
      );
      expect(stdout).toMatch(/^ERR_LIMITER_INFRA_MISSING Neither a stack nor a table zae-limiter /);
      expect(stdout).toContain(
        "npm install @zae-limiter/infra, or deploy the stack with zae-limiter",
      );
    } finally {
      renameSync(`${infra}-elsewhere`, infra);
      await server.stop();
    }
  });
});

describeWithEngine("the command line, installed alone", (engine) => {
  it(
    "aggregates a table, and is started by the library that comes later",
    async () => {
      const project = await projectWith("command-line-first", ["@zae-limiter/cli"]);
      const run = (...args: readonly string[]): Promise<Outcome> =>
        project.run(process.execPath, "node_modules/.bin/zae-limiter", ...args);
      const endpoint = encodeURIComponent(engine().endpointUrl);
      const url = `dynamodb://eu-west-1/${freshTableName()}?endpoint=${endpoint}`;
      const table = ["--repository", url];
      expect(await run(...table, "aggregate", "--once")).toMatchObject({ code: 1, stdout: "" });
      expect((await run(...table, "system", "set-defaults", "rpm:10")).code).toBe(0);
      expect((await run(...table, "acquire", "key-1", "gpt-4", "rpm=1")).code).toBe(0);
      const { code, stdout } = await run(...table, "aggregate", "--once", "--json");
      expect({ code, ...(JSON.parse(stdout) as object) }).toMatchObject({
        code: 0,
        ended: "counted",
        counted: 1,
      });
      const program = `import { upgradeTable } from "@zae-limiter/upgrade";
        import { tableOptions } from "zae-limiter/aggregator";
        const { to } = await upgradeTable({ ...tableOptions(process.argv[1]), dryRun: true });
        console.log(to);`;
      expect(
        await project.run(process.execPath, "--input-type=module", "-e", program, url),
      ).toEqual({ code: 0, stdout: "1.0.0\n", stderr: "" });
      await project.npm("install", "zae-limiter");
      expect(await project.run("npx", "zae-limiter", "--version")).toEqual({
        code: 0,
        stdout: `${version}\n`,
        stderr: "",
      });
    },
    TIMEOUT_MS,
  );
});

describe("the command", { timeout: TIMEOUT_MS }, () => {
  it.each([
    ["the library was installed first", undefined],
    ["both were installed at once", [["zae-limiter", "@zae-limiter/cli"]]],
  ] as const)("starts the command line when %s", async (title, steps) => {
    const name = title.replaceAll(" ", "-");
    const project = steps === undefined ? libraryFirst : await projectWith(name, ...steps);
    expect(await project.run("npx", "zae-limiter", "--version")).toEqual({
      code: 0,
      stdout: `${version}\n`,
      stderr: "",
    });
  });

  it("has the scenarios of load tests", async () => {
    const { code, stdout } = await libraryFirst.run("npx", "zae-limiter", "loadtest", "list");
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^simple +30 /m) });
  });

  it("shows the status of a repository", async () => {
    const args = ["--repository", "memory:", "status"];
    const { code, stdout, stderr } = await libraryFirst.run("npx", "zae-limiter", ...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^Repository +memory:$/m);
    expect(stdout).toMatch(/^Reachable +yes$/m);
    expect(stdout).toMatch(new RegExp(`^zae-limiter +${version}$`, "m"));
  });

  it.skipIf(newerNode === undefined)("works on a file with nothing but Node 24", async () => {
    const bin = join(libraryFirst.folder, "node_modules/.bin/zae-limiter");
    const run = (...args: readonly string[]): Promise<Outcome> =>
      libraryFirst.run(newerNode!, bin, "--repository", "sqlite:./limits.db", ...args);
    expect((await run("system", "set-defaults", "-l", "rpm:1/day")).code).toBe(0);
    expect((await run("acquire", "key-1", "gpt-4", "rpm=1")).code).toBe(0);
    expect((await run("acquire", "key-1", "gpt-4", "rpm=1")).code).toBe(3);
    const { code, stdout, stderr } = await run("status");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^Driver +node:sqlite$/m);
  });

  it("passes arguments and the exit code on, whichever package it was started from", async () => {
    for (const name of ["zae-limiter", "@zae-limiter/cli"]) {
      const bin = join(libraryFirst.folder, "node_modules", name, "bin/zae-limiter.js");
      const { code, stderr } = await libraryFirst.run(
        process.execPath,
        bin,
        "entity",
        "frobnicate",
      );
      expect({ name, code }).toEqual({ name, code: 2 });
      expect(stderr).toContain("frobnicate");
    }
  });
});

/** A source that TypeScript compiles to an ES module, whatever the package says that it is in. */
function withModuleNames(source: string): string {
  return source.replaceAll(/(from "\.\/[\w-]+)\.ts"/g, '$1.mjs"');
}

/** The beginning of an answer that is still being written. */
async function textUntil(end: string, response: Response): Promise<string> {
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  let text = "";
  while (!text.endsWith(end)) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`It ended with ${text}`);
    text += decoder.decode(value, { stream: true });
  }
  return text;
}

/** Packs both packages as they are published; returns their files by name. */
async function pack(): Promise<Record<string, string>> {
  const names = [
    "zae-limiter",
    "@zae-limiter/cli",
    "@zae-limiter/upgrade",
    "@zae-limiter/contract",
    "artillery-engine-zae-limiter",
  ];
  const workspaces = names.map((name) => `--workspace=${name}`);
  const options = ["--json", "--loglevel=error", "--pack-destination", folder];
  const { code, stdout, stderr } = await toOutcome("npm", ["pack", ...workspaces, ...options], {
    cwd: root,
  });
  if (code !== 0) throw new Error(stderr);
  const packages = Object.values(JSON.parse(stdout)) as { name: string; filename: string }[];
  return Object.fromEntries(packages.map(({ name, filename }) => [name, join(folder, filename)]));
}

/** An empty folder in which npm installs packages, step by step. */
async function projectWith(
  name: string,
  ...steps: readonly (readonly string[])[]
): Promise<Project> {
  const project = new Project(join(folder, name), registry.url, provider.environment);
  for (const packages of steps) await project.npm("install", ...packages);
  return project;
}

function listPackages({ folder: path }: Project): readonly string[] {
  return readdirSync(join(path, "node_modules")).filter((name) => !name.startsWith("."));
}

function filesUnder(path: string): readonly string[] {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(path.length + 1)
        .replaceAll("\\", "/"),
    );
}
