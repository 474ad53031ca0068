/*
 * Lists every public declaration of the library with its doc comment: what the entries of
 * package.json export, what those refer to, and all of their members. It reads the sources,
 * because TypeScript 7 has no compiler API.
 *
 *   entry ──exports──▶ declaration ──members──▶ member ──names a type──▶ declaration …
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseSync } from "oxc-parser";

/** A declaration or one of its members. */
export interface PublicMember {
  /** Such as `Repository.setLimits`. */
  readonly name: string;
  /** The file, and the line of the declaration. */
  readonly place: string;
  /** The doc comment, its own or an inherited one; empty if there is none. */
  readonly comment: string;
  readonly isCallable: boolean;
}

type Node = { readonly type: string; readonly start: number; readonly end: number } & Readonly<
  Record<string, unknown>
>;

/** A top-level declaration of one file. An interface and a constant may share a name. */
interface Declaration {
  readonly file: SourceFile;
  readonly name: string;
  readonly node: Node;
  /** Where its doc comment ends; before the word `export`. */
  readonly start: number;
}

interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly declarations: readonly Declaration[];
  /** By local name: which file it comes from, and under which name. */
  readonly imported: ReadonlyMap<string, { readonly from: string; readonly name: string }>;
  readonly exported: ReadonlyMap<string, { readonly from: string; readonly name: string }>;
  /** The files of which it exports everything. */
  readonly passedOn: readonly string[];
}

const LIBRARY = join(import.meta.dirname, "../../packages/limiter");

/** All public declarations and members of the library. */
export function publicApi(): readonly PublicMember[] {
  const folder = join(LIBRARY, "src");
  const files = new Map<string, SourceFile>();
  const fileAt = (path: string): SourceFile => {
    const known = files.get(path) ?? parsed(folder, path);
    files.set(path, known);
    return known;
  };
  const walk = new Walk(fileAt);
  for (const entry of entries())
    for (const { from, name } of fileAt(entry).exported.values()) walk.visit(fileAt(from), name);
  return walk.members;
}

/** The sources of what package.json exports. */
function entries(): readonly string[] {
  const { exports } = JSON.parse(readFileSync(join(LIBRARY, "package.json"), "utf8")) as {
    readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
  };
  // Methods of a store have their example in examples/own-backend. Internals have no promise.
  return Object.entries(exports).flatMap(([entry, target]) =>
    typeof target === "string" || /backend|internals/.test(entry)
      ? []
      : [target.types.replace("./dist/", "").replace(/\.d\.ts$/, ".ts")],
  );
}

class Walk {
  readonly members: PublicMember[] = [];
  readonly #fileAt: (path: string) => SourceFile;
  readonly #seen = new Set<Node>();

  constructor(fileAt: (path: string) => SourceFile) {
    this.#fileAt = fileAt;
  }

  visit(file: SourceFile, name: string): void {
    for (const declaration of this.#resolve(file, name)) {
      if (this.#seen.has(declaration.node)) continue;
      this.#seen.add(declaration.node);
      const { node, start } = declaration;
      const comment = commentBefore(declaration.file.text, start);
      if (isInternal(comment)) continue;
      this.#add(declaration, [declaration.name], node.start, {
        comment,
        isCallable: node.type === "FunctionDeclaration" || node.type === "TSDeclareFunction",
      });
      this.#members(declaration, node, [declaration.name]);
    }
  }

  /** The declarations that a name means in a file: its own, or what it imports or passes on. */
  #resolve(file: SourceFile, name: string): readonly Declaration[] {
    const own = file.declarations.filter((declaration) => declaration.name === name);
    if (own.length > 0) return own;
    const elsewhere = file.imported.get(name) ?? file.exported.get(name);
    return elsewhere === undefined
      ? file.passedOn.flatMap((from) => this.#resolve(this.#fileAt(from), name))
      : this.#resolve(this.#fileAt(elsewhere.from), elsewhere.name);
  }

  #members(declaration: Declaration, node: Node, path: readonly string[]): void {
    // A class says what its constructor is for.
    if (node["kind"] === "constructor") return;
    for (const child of childrenOf(node)) {
      const name = memberName(child, declaration.file.text);
      if (isPrivate(child) || isInternal(commentBefore(declaration.file.text, child.start)))
        continue;
      if (name !== undefined && isImplementationOf(child, childrenOf(node), declaration)) continue;
      if (name !== undefined) this.#member(declaration, child, [...path, name]);
      else if (child.type === "TSTypeReference" || isHeritage(child, node))
        this.#reference(declaration, child, path);
      else this.#members(declaration, child, path);
    }
  }

  #member(declaration: Declaration, child: Node, path: readonly string[]): void {
    const comments = [
      commentBefore(declaration.file.text, child.start),
      ...this.#inheritedComments(declaration, path.at(-1)!),
    ];
    this.#add(declaration, path, child.start, {
      comment: comments.find((comment) => comment !== "") ?? "",
      isCallable: this.#isCallable(declaration.file, child),
    });
    this.#members(declaration, child, path);
  }

  #reference(declaration: Declaration, node: Node, path: readonly string[]): void {
    const name = referredName(node);
    if (name !== undefined) this.visit(declaration.file, name);
    for (const child of childrenOf(node)) this.#members(declaration, child, path);
  }

  /** The comments on members of the same name of what a declaration extends and implements. */
  #inheritedComments(declaration: Declaration, name: string): readonly string[] {
    // TypeScript does not find the comments of inherited members with computed names.
    if (name.startsWith("[")) return [];
    return childrenOf(declaration.node)
      .filter((node) => isHeritage(node, declaration.node))
      .flatMap((node) => this.#resolve(declaration.file, referredName(node) ?? ""))
      .flatMap((other) => {
        const { text } = other.file;
        return bodyOf(other.node)
          .filter((member) => memberName(member, text) === name)
          .map((member) => commentBefore(text, member.start))
          .concat(this.#inheritedComments(other, name));
      });
  }

  /** Whether a member is a method, or a property that holds a function. */
  #isCallable(file: SourceFile, member: Node): boolean {
    if (member.type === "TSMethodSignature") return true;
    if (member.type === "MethodDefinition" || member.type === "TSAbstractMethodDefinition")
      return member["kind"] === "method";
    const type = (member["typeAnnotation"] as { typeAnnotation?: Node } | null)?.typeAnnotation;
    return type !== undefined && this.#isFunctionType(file, type);
  }

  #isFunctionType(file: SourceFile, type: Node): boolean {
    if (type.type === "TSFunctionType") return true;
    if (type.type !== "TSTypeReference") return false;
    return this.#resolve(file, referredName(type) ?? "").some(
      ({ file: other, node }) =>
        node.type === "TSTypeAliasDeclaration" &&
        this.#isFunctionType(other, node["typeAnnotation"] as Node),
    );
  }

  #add(
    { file }: Declaration,
    path: readonly string[],
    start: number,
    found: Pick<PublicMember, "comment" | "isCallable">,
  ): void {
    const line = file.text.slice(0, start).split("\n").length;
    this.members.push({ name: path.join("."), place: `${file.path}:${line}`, ...found });
  }
}

/** Whether a part of a class or an interface names what it extends or implements. */
function isHeritage(part: Node, declaration: Node): boolean {
  return (
    part.type === "TSInterfaceHeritage" ||
    part.type === "TSClassImplements" ||
    part === declaration["superClass"]
  );
}

/** What holds no part of a type: the bodies of functions, and values. */
const VALUES = new Set(["BlockStatement", "FunctionBody", "StaticBlock", "TSAsExpression"]);

function childrenOf(node: Node): readonly Node[] {
  const found: Node[] = [];
  for (const [key, value] of Object.entries(node)) {
    if (key === "init" || key === "value") {
      // The value of a method is its function, whose parameters and result are types.
      if (isNode(value) && /^(TSEmptyBody)?Function/.test(value.type)) found.push(value);
      continue;
    }
    for (const child of Array.isArray(value) ? (value as unknown[]) : [value])
      if (isNode(child) && !VALUES.has(child.type)) found.push(child);
  }
  return found;
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

/** The name of a member of an interface, a class or an object type; undefined for other nodes. */
function memberName(node: Node, text: string): string | undefined {
  if (!MEMBERS.has(node.type) || node["kind"] === "constructor") return undefined;
  const key = node["key"] as Node;
  const name = text.slice(key.start, key.end);
  return node["computed"] === true ? `[${name}]` : name;
}

const MEMBERS: ReadonlySet<string> = new Set([
  "TSPropertySignature",
  "TSMethodSignature",
  "PropertyDefinition",
  "MethodDefinition",
  "TSAbstractMethodDefinition",
]);

function bodyOf(node: Node): readonly Node[] {
  const body = node["body"];
  return isNode(body) ? (body["body"] as readonly Node[]) : [];
}

/** Whether a method is the body of overloads, which alone are seen from outside. */
function isImplementationOf(
  method: Node,
  members: readonly Node[],
  { file: { text } }: Declaration,
): boolean {
  const isOverload = (node: Node): boolean =>
    (node["value"] as Node | null | undefined)?.type === "TSEmptyBodyFunctionExpression";
  return (
    method.type === "MethodDefinition" &&
    !isOverload(method) &&
    members.some(
      (other) => isOverload(other) && memberName(other, text) === memberName(method, text),
    )
  );
}

function isPrivate(node: Node): boolean {
  const key = node["key"];
  return node["accessibility"] === "private" || (isNode(key) && key.type === "PrivateIdentifier");
}

function isInternal(comment: string): boolean {
  return comment.includes("@internal");
}

function referredName(node: Node): string | undefined {
  if (node.type === "Identifier") return String(node["name"]);
  const named = node["typeName"] ?? node["expression"];
  return isNode(named) && named.type === "Identifier" ? String(named["name"]) : undefined;
}

/** The doc comment that ends right before a place in a file. */
function commentBefore(text: string, start: number): string {
  const before = text.slice(0, start).trimEnd();
  if (!before.endsWith("*/")) return "";
  const begin = before.lastIndexOf("/*");
  return before.startsWith("/**", begin) ? before.slice(begin) : "";
}

function parsed(folder: string, path: string): SourceFile {
  const text = readFileSync(join(folder, path), "utf8");
  const { program } = parseSync(path, text);
  const declarations: Declaration[] = [];
  const imported = new Map<string, { from: string; name: string }>();
  const exported = new Map<string, { from: string; name: string }>();
  const passedOn: string[] = [];
  const file: SourceFile = { path, text, declarations, imported, exported, passedOn };
  const target = (specifier: string): string => join(dirname(path), specifier);
  for (const statement of program.body as unknown as readonly Node[]) {
    const source = statement["source"] as { readonly value: string } | null | undefined;
    const relative = source?.value.startsWith(".") ? target(source.value) : undefined;
    const specifiers = (statement["specifiers"] ?? []) as readonly Readonly<Record<string, Node>>[];
    if (statement.type === "ExportAllDeclaration" && relative !== undefined)
      passedOn.push(relative);
    if (source !== null && source !== undefined) {
      for (const specifier of relative === undefined ? [] : specifiers) {
        const local = String(specifier["local"]!["name"]);
        if (statement.type === "ImportDeclaration") {
          const { name = local } = (specifier["imported"] ?? {}) as { readonly name?: string };
          imported.set(local, { from: relative!, name });
        } else
          exported.set(String(specifier["exported"]!["name"]), { from: relative!, name: local });
      }
      continue;
    }
    const node = isNode(statement["declaration"]) ? statement["declaration"] : statement;
    for (const [name, part] of namesOf(node))
      declarations.push({ file, name, node: part, start: statement.start });
  }
  return file;
}

/** What a statement declares. The type of a constant is in its identifier. */
function namesOf(node: Node): readonly (readonly [string, Node])[] {
  if (node.type === "VariableDeclaration")
    return (node["declarations"] as readonly Node[]).map((part) => [
      String((part["id"] as Node)["name"]),
      part,
    ]);
  const id = node["id"];
  return isNode(id) ? [[String(id["name"]), node]] : [];
}
