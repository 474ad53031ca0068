import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { VERSION } from "zae-limiter";
import { describe, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "..");
const LIBRARY = join(ROOT, "packages/limiter");
const SOURCE = join(LIBRARY, "src");

/** One import of one source file, both as paths within `src`, or as a package name. */
interface Import {
  readonly from: string;
  readonly to: string;
}

const sources = filesUnder(SOURCE).filter(
  (path) => path.endsWith(".ts") && !/\.test(-d)?\.ts$/.test(path),
);
const imports = sources.flatMap(importsOf);

/**
 * Who may import whom, from the inside out. An adapter is a folder under `repository/` with a
 * backend in it; adapters do not know each other. Files directly under `src` put everything
 * together and may import anything.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: ["core"],
  port: ["core", "port"],
  limiter: ["core", "port", "limiter"],
  adapter: ["core", "port"],
  http: ["core", "port", "limiter", "http"],
  manifest: ["core", "port", "manifest"],
  testing: ["core", "port", "limiter", "testing"],
};

describe("dependencies point inwards", () => {
  it.each(Object.keys(MAY_IMPORT))("%s imports only what is further in", (layer) => {
    const wrong = imports.filter(
      ({ from, to }) => layerOf(from) === layer && isFile(to) && !mayImport(from, to),
    );
    expect(wrong).toEqual([]);
  });

  it("every source file belongs to a layer", () => {
    const layers = new Set([...Object.keys(MAY_IMPORT), "root"]);
    expect(sources.filter((path) => !layers.has(layerOf(path)))).toEqual([]);
    expect(imports.length).toBeGreaterThan(100);
  });

  it("only adapters import packages, and only testing and adapters import Node's", () => {
    const outside = imports.filter(({ to }) => !isFile(to));
    expect(
      outside.filter(
        ({ from }) => !["adapter", "testing", "http", "manifest"].includes(layerOf(from)),
      ),
    ).toEqual([]);
    expect(
      imports.filter(({ from, to }) => from.startsWith("repository/memory/") && !isFile(to)),
    ).toEqual([]);
  });

  it("a package reaches another by its name, never by its files", () => {
    for (const name of readdirSync(join(ROOT, "packages"))) {
      const folder = join(ROOT, "packages", name);
      const files = filesUnder(join(folder, "src")).filter((path) => path.endsWith(".ts"));
      for (const path of files) {
        for (const specifier of specifiersOf(join(folder, "src", path)).filter(isRelative))
          expect(
            relative(folder, join(folder, "src", dirname(path), specifier)),
            `${name}/src/${path}`,
          ).not.toMatch(/^\.\./);
      }
    }
  });

  it("an example reaches packages by their names, never by their files", () => {
    const examples = join(ROOT, "examples");
    const files = filesUnder(examples).filter((path) => /^[^/]+\/[^/]+\.ts$/.test(path));
    expect(files.length).toBeGreaterThan(10);
    for (const path of files)
      for (const specifier of specifiersOf(join(examples, path)).filter(isRelative))
        expect(dirname(join(path, "..", specifier)), path).toBe(dirname(path));
  });
});

describe("core is pure", () => {
  it.each([
    [
      "a clock",
      /\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\b|\bset(?:Timeout|Interval|Immediate)\b|\bqueueMicrotask\b/,
    ],
    ["randomness", /\bMath\.random\b|\bcrypto\b/],
    ["an environment", /\bprocess\b|\bglobalThis\b|\bimport\.meta\b/],
    ["I/O", /\bnode:|\bfetch\b|\bconsole\b|\brequire\b|\bBuffer\b/],
    ["waiting", /\basync\b|\bawait\b|\bPromise\b/],
  ])("it touches no %s", (_, pattern) => {
    expect(
      sources.filter((path) => path.startsWith("core/") && pattern.test(codeOf(path))),
    ).toEqual([]);
  });
});

describe("time and chance", () => {
  it.each([
    ["Date.now", /\bDate\.now\b/],
    ["new Date()", /\bnew Date\(\s*\)/],
    ["performance.now", /\bperformance\.now\b/],
    ["setTimeout", /\bset(?:Timeout|Interval)\b/],
    ["Math.random", /\bMath\.random\b/],
  ])("%s appears in system-clock.ts only", (_, pattern) => {
    // The contract suite lets real stores answer while its manual clock stands still, and bounds
    // that wait by real time.
    const allowed = new Set(["repository/system-clock.ts", "testing/contract/world.ts"]);
    expect(sources.filter((path) => !allowed.has(path) && pattern.test(codeOf(path)))).toEqual([]);
  });
});

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly dependencies?: object;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
  readonly exports?: Readonly<
    Record<string, string | { readonly types: string; readonly default: string }>
  >;
}

describe("packages", () => {
  const library = manifestOf(LIBRARY);
  const built = readdirSync(join(ROOT, "packages"))
    .map((name) => join(ROOT, "packages", name))
    .filter((folder) => existsSync(join(folder, "tsconfig.json")));

  it("the library needs nothing at run time; clients are optional peers", () => {
    expect(library.dependencies).toBeUndefined();
    for (const peer of Object.keys(library.peerDependencies ?? {}))
      expect(library.peerDependenciesMeta?.[peer]?.optional, peer).toBe(true);
  });

  it("VERSION is the version of the package", () => {
    expect(VERSION).toBe(library.version);
  });

  it.each(built.map((folder) => [relative(ROOT, folder), folder]))(
    "%s exports files that are built and can be loaded",
    async (_, folder) => {
      for (const [subpath, target] of Object.entries(manifestOf(folder).exports ?? {})) {
        if (typeof target === "string") {
          expect(existsSync(join(folder, target)), subpath).toBe(true);
          continue;
        }
        expect(Object.keys(target)).toEqual(["types", "default"]);
        expect(existsSync(join(folder, target.types)), `${subpath} types; run npm run build`).toBe(
          true,
        );
        const module = (await import(
          /* @vite-ignore */ pathToFileURL(join(folder, target.default)).href
        )) as object;
        expect(Object.keys(module).length, subpath).toBeGreaterThan(0);
      }
    },
  );

  it("exports every index of the library's source, and nothing else", () => {
    const exported = Object.values(library.exports ?? {}).flatMap((target) =>
      typeof target === "string" ? [] : [target.default],
    );
    const indexes = sources
      .filter((path) => /(^|\/)index\.ts$/.test(path))
      .map((path) => `./dist/${path.replace(/\.ts$/, ".js")}`);
    expect(exported.toSorted()).toEqual(indexes.toSorted());
  });

  it("lists its exports by hand", () => {
    for (const path of sources.filter((name) => name.endsWith("index.ts")))
      expect(codeOf(path), path).not.toMatch(/export \*|export default/);
  });
});

describe("tidiness", () => {
  const tracked = trackedFiles();
  const texts = tracked.filter((path) =>
    /\.(?:c|m)?[jt]sx?$|\.(?:json|md|ya?ml|html|css|sh)$|(?:^|\/)\.[\w]+(?:rc)?$|run$/.test(path),
  );

  it.skipIf(tracked.length === 0)(
    "no file of code is longer than 480 lines, and none is called utils, helpers or common",
    () => {
      const code = tracked.filter((path) => /\.[cm]?[jt]sx?$/.test(path));
      expect(
        code.filter((path) => readFileSync(join(ROOT, path), "utf8").split("\n").length > 481),
      ).toEqual([]);
      expect(
        code.filter((path) => /(?:^|\/)(?:utils?|helpers?|common)\.[cm]?[jt]sx?$/.test(path)),
      ).toEqual([]);
    },
  );

  it.skipIf(tracked.length === 0)(
    "no file names a folder of somebody's machine, or the host of a package registry",
    () => {
      const folders = ["work", "root", "home", "Users"].map((name) => `/${name}/`).join("|");
      // Spelt in pieces, so that this file does not find itself.
      const hosts = [
        ["registry", "npmjs"],
        ["registry", "yarnpkg"],
        ["arti", "factory"],
        ["code", "artifact"],
        ["verd", "accio"],
      ];
      const pattern = new RegExp(
        `(?:^|[\\s"'\`(=:])(?:${folders})|${hosts.map((parts) => parts.join("\\W?")).join("|")}`,
        "m",
      );
      expect(texts.filter((path) => pattern.test(readFileSync(join(ROOT, path), "utf8")))).toEqual(
        [],
      );
    },
  );
});

function filesUnder(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}

/** The files that are in the repository; none where this is not a clone. */
function trackedFiles(): readonly string[] {
  try {
    const listed = execFileSync("git", ["ls-files", "-z"], {
      cwd: ROOT,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    return listed.split("\0").filter((path) => path !== "" && existsSync(join(ROOT, path)));
  } catch {
    return [];
  }
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
}

function specifiersOf(path: string): string[] {
  const code = withoutComments(readFileSync(path, "utf8"));
  const pattern = /(?:\bfrom\s*|\bimport\s*\(\s*|^\s*import\s*)"([^"]+)"/gm;
  return [...code.matchAll(pattern)].map((match) => match[1]!);
}

function importsOf(path: string): readonly Import[] {
  return specifiersOf(join(SOURCE, path)).map((specifier) => ({
    from: path,
    to: isRelative(specifier)
      ? relative(SOURCE, join(SOURCE, dirname(path), specifier))
      : specifier,
  }));
}

function isRelative(specifier: string): boolean {
  return specifier.startsWith(".");
}

function isFile(target: string): boolean {
  return target.endsWith(".ts");
}

function layerOf(path: string): string {
  const [first = "", second = "", third] = path.split("/");
  if (second === "") return "root";
  if (first !== "repository") return first;
  return third === undefined || second === "management" ? "port" : "adapter";
}

function mayImport(from: string, to: string): boolean {
  const layer = layerOf(from);
  if (to === "version.ts") return layer !== "core";
  if (layer === "adapter" && layerOf(to) === "adapter")
    return from.split("/")[1] === to.split("/")[1];
  return MAY_IMPORT[layer]!.includes(layerOf(to));
}

function codeOf(path: string): string {
  return withoutComments(readFileSync(join(SOURCE, path), "utf8"));
}

function withoutComments(code: string): string {
  return code.replaceAll(/\/\*[\s\S]*?\*\/|(?<![:"'`])\/\/.*$/gm, "");
}
