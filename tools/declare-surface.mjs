// Writes test/api/declared*.d.ts, the public surface of all packages, from the declarations that
// the compiler has built: `npm run declare`. So a review shows every change of the surface.
//
// Each declaration stands once, in the module of the first entry that exports it, or of the first
// that needs it. What has no `export` is not public. Comments and private members are left out; the
// modules have names of their own, so that a program can compare them with the packages.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseSync } from "oxc-parser";
import { format } from "oxfmt";

const root = fileURLToPath(new URL("..", import.meta.url));

/** The files of entries, and of one declaration; the others are in declared.d.ts. */
const FILES = {
  charge: ["ChargeRequest"],
  runner: ["zae-limiter/aggregator"],
  schema: ["zae-limiter/dynamodb/schema"],
  http: ["http", "express", "fastify", "hono"].map((name) => `zae-limiter/${name}`),
  llm: ["llm", "ai-sdk", "openai", "anthropic", "langchain"].map((name) => `zae-limiter/${name}`),
  stores: ["zae-limiter/stores"],
  telemetry: ["zae-limiter/diagnostics", "zae-limiter/otel"],
  manifest: ["zae-limiter/manifest", "@zae-limiter/infra/manifest"],
  upgrade: ["@zae-limiter/upgrade"],
  contract: ["@zae-limiter/contract"],
  loadtest: ["artillery-engine-zae-limiter", "artillery-engine-zae-limiter/run"],
  infra: ["@zae-limiter/infra"],
  stacks: ["@zae-limiter/infra/cdk"],
};

/** The text of every file, by its name. */
export async function declareSurface() {
  const texts = {};
  for (const module of collectModules())
    for (const [file, lines] of printModule(module)) {
      texts[file] ??= "// Made by `npm run declare`.\n";
      texts[file] += `\ndeclare module "${module.from}" {\n${lines.join("\n")}\n}\n`;
    }
  for (const [file, text] of Object.entries(texts)) {
    const { code, errors } = await format(file, text, { printWidth: 100 });
    if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
    texts[file] = code;
  }
  return texts;
}

/**
 * The entries of all packages with their declarations: first what they export, then what that
 * needs. `passed` is what they import from others and pass on.
 */
export function collectModules() {
  const [entries, files] = [readEntries(), new Map()];
  const modules = [...entries].map(([name, path]) => {
    const module = { name, from: `declared/${name}`, declarations: [], passed: new Map() };
    for (const exported of fileAt(path).exported.keys()) {
      const found = resolve(path, exported);
      if (found.from !== undefined) pass(module, "export", found);
      else
        module.declarations.push(
          Object.assign(found, { name: exported, from: module.from, isPublic: true }),
        );
    }
    return module;
  });
  for (const module of modules)
    // The list grows meanwhile.
    for (const declaration of module.declarations)
      visit(declaration.nodes, (node) => {
        const found = resolve(declaration.path, node.name);
        if (found === undefined) return;
        declaration.references.set(node, found);
        if (found.from === undefined)
          module.declarations.push(Object.assign(found, { from: module.from }));
        else if (found.from !== module.from) pass(module, "import", found);
      });
  return modules;

  function fileAt(path) {
    if (!files.has(path)) files.set(path, parse(path));
    return files.get(path);
  }

  /** The declaration that a name means in a file; undefined for what is global. */
  function resolve(path, name) {
    const { declared, imported, passedOn } = fileAt(path);
    if (declared.has(name)) return declared.get(name);
    const { from, name: other } = imported.get(name) ?? fileAt(path).exported.get(name) ?? {};
    if (other !== undefined) return find(path, from, other);
    return passedOn.map((each) => find(path, each, name)).find((found) => found !== undefined);
  }

  function find(path, from, name) {
    if (from.startsWith("."))
      return resolve(join(dirname(path), from.replace(".ts", ".d.ts")), name);
    return entries.has(from) ? resolve(entries.get(from), name) : { name, from };
  }
}

/** The built declarations of public entries, by the name that users import. */
function readEntries() {
  const found = ["limiter", "upgrade", "contract", "loadtest", "infra"].flatMap((folder) => {
    const path = join(root, "packages", folder);
    const { name, exports } = JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
    return Object.entries(exports)
      .filter(([subpath, { types }]) => types !== undefined && !subpath.endsWith("internals"))
      .map(([subpath, { types }]) => [name + subpath.slice(1), join(path, types)]);
  });
  return new Map(found);
}

/** Other modules take a class with private members from the package: no other type fits it. */
function pass({ passed }, word, { name, from, nodes = [] }) {
  const isNominal = nodes.some(({ body }) => body?.body?.some(isPrivate));
  const place = isNominal ? from.replace("declared/", "") : from;
  const key = JSON.stringify([word, place, name.startsWith("* as ") && name]);
  passed.set(key, (passed.get(key) ?? new Set()).add(name));
}

/** The lines of a module, by file. */
function printModule({ name, declarations, passed }) {
  const files = new Map();
  const add = (file, lines) => files.set(file, [...(files.get(file) ?? []), ...lines]);
  const own = toFile(name) ?? "declared.d.ts";
  for (const [key, names] of passed) {
    const [word, from, whole] = JSON.parse(key);
    add(own, [`${word} ${whole || `{ ${[...names].join(", ")} }`} from "${from}";`]);
  }
  // Otherwise, an ambient module exports everything.
  if (declarations.some(({ isPublic, nodes }) => !isPublic && nodes[0].kind === "const"))
    add(own, ["export {};"]);
  for (const declaration of declarations)
    add(
      toFile(declaration.name) ?? own,
      declaration.nodes.map((node) => print(declaration, node)),
    );
  return files;
}

function toFile(name) {
  const part = Object.keys(FILES).find((each) => FILES[each].includes(name));
  return part && `declared-${part}.d.ts`;
}

/** A declaration without its comments and private members, with the names that it has here. */
function print({ text, references, isPublic }, node) {
  const edits = [...references].map(([{ start, name }, other]) => [
    start,
    start + name.length,
    other.name.replace("* as ", ""),
  ]);
  for (const { start, end } of (node.body?.body ?? []).filter(isPrivate))
    edits.push([start, end, ""]);
  // From the end, so that the positions of those before stay true.
  edits.sort(([left], [right]) => right - left);
  const { start: at } = node;
  const printed = edits
    .filter(([start, end]) => start >= at && end <= node.end)
    .reduce(
      (all, [start, end, part]) => all.slice(0, start - at) + part + all.slice(end - at),
      text.slice(at, node.end),
    )
    .replaceAll(/\/\*.*?\*\//gs, "")
    .replaceAll(/^\s*\n/gm, "");
  return (isPublic ? "export " : "") + printed.replace(/^declare /, "");
}

/** What a file of declarations declares, and where its other names come from. */
function parse(path) {
  const text = readFileSync(path, "utf8");
  const file = { declared: new Map(), imported: new Map(), exported: new Map(), passedOn: [] };
  for (const statement of parseSync(path, text).program.body) {
    const from = statement.source?.value;
    if (statement.type === "ExportAllDeclaration") file.passedOn.push(from);
    for (const { local, imported, exported } of statement.specifiers ?? [])
      if (exported !== undefined) file.exported.set(exported.name, { from, name: local.name });
      else file.imported.set(local.name, { from, name: imported?.name ?? `* as ${local.name}` });
    const node = statement.declaration ?? statement;
    const name = (node.id ?? node.declarations?.[0].id)?.name;
    if (name === undefined) continue;
    const found = file.declared.get(name) ?? { name, path, text, nodes: [], references: new Map() };
    file.declared.set(name, { ...found, nodes: [...found.nodes, node] });
  }
  return file;
}

/** Calls `see` with every identifier that may name a declaration. */
function visit(node, see) {
  if (Array.isArray(node)) return node.forEach((each) => visit(each, see));
  if (node === null || typeof node !== "object" || isPrivate(node)) return;
  if (node.type === "Identifier") see(node);
  for (const [key, child] of Object.entries(node))
    if (key !== "key" || node.computed) visit(child, see);
}

/** Such members would make a type compatible with no other; constructors do no harm. */
function isPrivate({ accessibility, kind, key }) {
  if (key?.type === "PrivateIdentifier") return true;
  return accessibility === "private" && kind !== "constructor";
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  for (const [file, text] of Object.entries(await declareSurface()))
    writeFileSync(join(root, "test/api", file), text);
