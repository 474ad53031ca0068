import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { VERSION } from "zae-limiter";
import { describe, expect, it } from "vitest";
import { INFRA_MAY_IMPORT, MAY_IMPORT, SURFACE } from "./support/may-import.ts";

const ROOT = join(import.meta.dirname, "..");
const LIBRARY = join(ROOT, "packages/limiter");
const SOURCE = join(LIBRARY, "src");

/** One import of one source file, both as paths within `src`, or as a package name. */
interface Import {
  readonly from: string;
  readonly to: string;
}

const sources = sourcesIn(SOURCE);
const imports = importsIn(SOURCE);

const mayLookOutside = /^(?:repository\/(?:sqlite|dynamodb)|http|otel|llm)\b/;

describe("dependencies point inwards", () => {
  it.each(Object.keys(MAY_IMPORT))("%s imports only what is further in", (folder) => {
    const allowed = new Set([folder, ...MAY_IMPORT[folder]!]);
    const wrong = imports.filter(
      ({ from, to }) => dirname(from) === folder && isFile(to) && !allowed.has(dirname(to)),
    );
    expect(wrong).toEqual([]);
  });

  it("the rule names every folder that has sources, and no other", () => {
    const folders = new Set(sources.map((path) => dirname(path)));
    folders.delete(".");
    expect(Object.keys(MAY_IMPORT).toSorted()).toEqual([...folders].toSorted());
    expect(imports.length).toBeGreaterThan(100);
  });

  it("the diagram of ARCHITECTURE.md shows what folders import, and nothing else", () => {
    const page = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8");
    const folders = new Map(
      [...page.matchAll(/(\w+)\["([\w/]+)"\]/g)].map(([, id, at]) => [id, at!]),
    );
    const arrows = [...page.matchAll(/^ +(\w+)(?:\[.*?\])? --> (\w+)/gm)].map(([, from, to]) => ({
      from: folders.get(from)!,
      to: folders.get(to)!,
    }));
    const getNode = (path: string): string | undefined =>
      [...folders.values()]
        .filter((folder) => path.startsWith(`${folder}/`))
        .toSorted((one, other) => other.length - one.length)[0];
    const between = imports.flatMap((edge) => {
      const [from, to] = [getNode(edge.from), getNode(edge.to)];
      return from === undefined || to === undefined || from === to ? [] : [{ from, to }];
    });
    const drawn = new Map(
      [...folders.values()].map((folder) => [folder, listTargets(folder, arrows)]),
    );
    expect(between.filter(({ from, to }) => !reachable(from, drawn).has(to))).toEqual([]);
    expect(arrows.filter(({ from, to }) => !listTargets(from, between).includes(to))).toEqual([]);
    expect(arrows.length).toBeGreaterThan(15);
  });

  it("backends take nothing from management but the class that they extend", () => {
    const taken = imports.filter(
      ({ from, to }) =>
        dirname(to) === SURFACE && dirname(from) !== SURFACE && dirname(from) !== ".",
    );
    const surface = `${SURFACE}/store-repository.ts`;
    expect(taken.filter(({ to }) => to !== surface)).toEqual([]);
    expect(taken.length).toBeGreaterThan(2);
  });

  it("only adapters import packages, and only adapters and one hash import Node's", () => {
    const outside = imports.filter(({ to }) => !isFile(to) && to !== "node:crypto");
    expect(
      imports.filter(({ from, to }) => to === "node:crypto" && !mayLookOutside.test(from)),
    ).toEqual([{ from: "manifest/manifest.ts", to: "node:crypto" }]);
    expect(outside.filter(({ from }) => !mayLookOutside.test(from))).toEqual([]);
  });

  it("no file imports another in a circle, not even for its types", () => {
    expect(circles(imports)).toEqual([]);
  });

  it("rooms of infra import what is further in, and its files no other in a circle", () => {
    const inInfra = importsIn(join(ROOT, "packages/infra/src"));
    const between = inInfra.filter(({ from, to }) => isFile(to) && dirname(from) !== ".");
    const wrong = between.filter(({ from, to }) => {
      const [folder, other] = [dirname(from), dirname(to)];
      return folder !== other && !INFRA_MAY_IMPORT[folder]?.includes(other);
    });
    expect(wrong).toEqual([]);
    expect(new Set(between.map(({ from }) => dirname(from)))).toEqual(
      new Set(Object.keys(INFRA_MAY_IMPORT)),
    );
    expect(circles(inInfra)).toEqual([]);
  });

  it("no module keeps state that changes, but for named memo tables", () => {
    const pattern =
      /^(?:export )?(?:let\b|(?:const|var) (?!\w*MEMO)\w+(?:: (?!Readonly)[^=]+)? = new (?:Weak)?(?:Map|Set)\b).*/gm;
    const found = sources.flatMap((path) =>
      [...getCode(path).matchAll(pattern)].map(([line]) => `${path}: ${line}`),
    );
    expect(found).toEqual([]);
  });

  it("a package reaches another by its name, never by its files", () => {
    for (const name of readdirSync(join(ROOT, "packages"))) {
      const folder = join(ROOT, "packages", name);
      const files = filesUnder(join(folder, "src")).filter((path) => path.endsWith(".ts"));
      for (const path of files) {
        for (const specifier of listSpecifiers(join(folder, "src", path)).filter(isRelative))
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
      for (const specifier of listSpecifiers(join(examples, path)).filter(isRelative))
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
      sources.filter((path) => path.startsWith("core/") && pattern.test(getCode(path))),
    ).toEqual([]);
  });
});

describe("time and randomness", () => {
  it.each([
    ["Date.now", /\bDate\.now\b/],
    ["new Date()", /\bnew Date\(\s*\)/],
    ["performance.now", /\bperformance\.now\b/],
    ["setTimeout", /\bset(?:Timeout|Interval)\b/],
    ["Math.random", /\bMath\.random\b/],
  ])("%s appears in system-clock.ts only", (_, pattern) => {
    const elsewhere = sources.filter((path) => path !== "repository/system-clock.ts");
    expect(elsewhere.filter((path) => pattern.test(getCode(path)))).toEqual([]);
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
  const library = buildManifest(LIBRARY);
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
      for (const [subpath, target] of Object.entries(buildManifest(folder).exports ?? {})) {
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
      expect(getCode(path), path).not.toMatch(/export \*|export default/);
  });
});

describe("tidiness", () => {
  const tracked = trackedFiles();
  const texts = tracked.filter((path) =>
    /\.(?:c|m)?[jt]sx?$|\.(?:json|md|ya?ml|html|css|sh)$|(?:^|\/)\.[\w]+(?:rc)?$|run$/.test(path),
  );

  it.skipIf(tracked.length === 0)("no file is called utils, helpers or common", () => {
    expect(
      tracked.filter((path) => /(?:^|\/)(?:utils?|helpers?|common)\.[cm]?[jt]sx?$/.test(path)),
    ).toEqual([]);
  });

  // The formatter sees to the code; it leaves comments alone.
  it.skipIf(tracked.length === 0)("no comment is wider than 100 columns", () => {
    const code = tracked.filter((path) => /\.[cm]?[jt]s$/.test(path) && !path.endsWith(".d.ts"));
    const wide = code.flatMap((path) =>
      readFileSync(join(ROOT, path), "utf8")
        .split("\n")
        .filter((line) => line.length > 100 && /^\s*(?:\*|\/\*|\/\/)/.test(line))
        .map((line) => `${path}: ${line.trim()}`),
    );
    expect(wide).toEqual([]);
  });

  // `tokensOf` is public; the other three are verbs or a question.
  it.skipIf(tracked.length === 0)("functions are verbs: none is named after what it is of", () => {
    const declared =
      /^\s*(?:export )?(?:(?:async )?function\*? |const |(?:(?:static|async|readonly) )*#?)([a-z]\w*Of)(?: = (?:async )?)?[(<]/gm;
    const code = tracked.filter((path) => /^packages\/\w+\/.*\.ts$/.test(path));
    const named = code
      .filter((path) => !/\.test(?:-d)?\.ts$|\/test\//.test(path))
      .flatMap((path) =>
        [...readFileSync(join(ROOT, path), "utf8").matchAll(declared)].map(
          ([, name]) => `${path}: ${name}`,
        ),
      );
    expect(named.filter((name) => !/ (?:tokensOf|checkOneOf|indexOf|isOf)$/.test(name))).toEqual(
      [],
    );
  });

  it.skipIf(tracked.length === 0)(
    "no file names a folder of one machine, or the host of a package registry",
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
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll("\\", "/"));
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

function buildManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
}

function listSpecifiers(path: string): string[] {
  const code = withoutComments(readFileSync(path, "utf8"));
  const pattern = /(?:\bfrom\s*|\bimport\s*\(\s*|^\s*import\s*)"([^"]+)"/gm;
  return [...code.matchAll(pattern)].map((match) => match[1]!);
}

/** The sources under a folder, without tests. */
function sourcesIn(folder: string): readonly string[] {
  return filesUnder(folder).filter(
    (path) => path.endsWith(".ts") && !/\.test(-d)?\.ts$/.test(path),
  );
}

function importsIn(folder: string): readonly Import[] {
  return sourcesIn(folder).flatMap((from) =>
    listSpecifiers(join(folder, from)).map((specifier) => ({
      from,
      to: isRelative(specifier)
        ? relative(folder, join(folder, dirname(from), specifier))
        : specifier,
    })),
  );
}

function isRelative(specifier: string): boolean {
  return specifier.startsWith(".");
}

function isFile(target: string): boolean {
  return target.endsWith(".ts");
}

/** Files that import each other, directly or through others, one list for each group. */
function circles(edges: readonly Import[]): readonly (readonly string[])[] {
  const targets = new Map<string, string[]>();
  for (const { from, to } of edges) targets.set(from, [...(targets.get(from) ?? []), to]);
  const reached = new Map([...targets.keys()].map((file) => [file, reachable(file, targets)]));
  const inCircle = [...reached].filter(([file, others]) => others.has(file)).map(([file]) => file);
  const groups = inCircle.map((file) =>
    inCircle.filter((other) => reached.get(file)!.has(other) && reached.get(other)!.has(file)),
  );
  return [...new Map(groups.map((group) => [group.join(), group])).values()];
}

function listTargets(from: string, edges: readonly Import[]): string[] {
  return edges.filter((edge) => edge.from === from).map(({ to }) => to);
}

function reachable(file: string, targets: ReadonlyMap<string, readonly string[]>): Set<string> {
  const found = new Set<string>();
  const open = [...(targets.get(file) ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (found.has(next)) continue;
    found.add(next);
    open.push(...(targets.get(next) ?? []));
  }
  return found;
}

function getCode(path: string): string {
  return withoutComments(readFileSync(join(SOURCE, path), "utf8"));
}

function withoutComments(code: string): string {
  return code.replaceAll(/\/\*[\s\S]*?\*\/|(?<![:"'`])\/\/.*$/gm, "");
}
