/*
 * Lists every public declaration of the library with its doc comment: what its entries export, what
 * those refer to, and all of their members.
 */
import { join, relative } from "node:path";
import { collectModules, type Declaration, type SyntaxNode } from "../../tools/declare-surface.mjs";

/** A declaration or one of its members. */
export interface PublicMember {
  /** Such as `Repository.setLimits`. */
  readonly name: string;
  /** The built file, and the line of the declaration. */
  readonly place: string;
  /** The doc comment, its own or an inherited one; empty if there is none. */
  readonly comment: string;
  readonly isCallable: boolean;
}

const BUILT = join(import.meta.dirname, "../../packages/limiter/dist");

/** Methods of a store have their example in examples/own-backend. */
const DOCUMENTED = /^zae-limiter(?!\/backend)|\/upgrade$/;

/** All public declarations and members of the library. */
export function publicApi(): readonly PublicMember[] {
  const modules = collectModules().filter(({ name }) => DOCUMENTED.test(name));
  const reached = new Set(
    modules.flatMap(({ declarations }) => declarations.filter(({ isPublic }) => isPublic)),
  );
  // The set grows meanwhile.
  for (const declaration of reached)
    for (const [node, found] of declaration.references)
      if (found.nodes !== undefined && !isOfConstructor(declaration, node)) reached.add(found);
  return [...reached].flatMap((declaration) =>
    declaration.nodes.flatMap((node) => {
      const own = {
        comment: commentBefore(declaration, node),
        isCallable: node.type === "TSDeclareFunction",
      };
      const found = toMember(declaration, node, { name: declaration.name, ...own });
      return [found].concat(membersIn(declaration, node, declaration.name));
    }),
  );
}

/** A class says what its constructor is for. */
function isOfConstructor({ nodes }: Declaration, { start }: SyntaxNode): boolean {
  return nodes
    .flatMap((node) => (isNode(node["body"]) ? getChildren(node["body"]) : []))
    .some(
      (member) => member["kind"] === "constructor" && member.start < start && start < member.end,
    );
}

function membersIn(
  declaration: Declaration,
  node: SyntaxNode,
  path: string,
): readonly PublicMember[] {
  return getChildren(node).flatMap((child) => {
    if (isPrivate(child) || child["kind"] === "constructor") return [];
    const member = memberName(declaration, child);
    if (member === undefined) return membersIn(declaration, child, path);
    const name = `${path}.${member}`;
    const comments = [commentBefore(declaration, child), ...inheritedComments(declaration, member)];
    const comment = comments.find((each) => each !== "") ?? "";
    const isCallable = isMethod(declaration, child);
    const found = toMember(declaration, child, { name, comment, isCallable });
    return [found].concat(membersIn(declaration, child, name));
  });
}

function toMember(
  { path, text }: Declaration,
  { start }: SyntaxNode,
  member: Omit<PublicMember, "place">,
): PublicMember {
  const line = text.slice(0, start).split("\n").length;
  return { ...member, place: `${relative(BUILT, path)}:${line}` };
}

/** The comments on members of the same name of what a declaration extends and implements. */
function inheritedComments({ nodes, references }: Declaration, member: string): readonly string[] {
  // TypeScript does not find the comments of inherited members with computed names.
  if (member.startsWith("[")) return [];
  return nodes
    .flatMap((node) => [node["superClass"], node["extends"], node["implements"]].flat())
    .filter(isNode)
    .flatMap((heritage) => references.get((heritage["expression"] ?? heritage) as SyntaxNode) ?? [])
    .flatMap((other) => {
      if (other.nodes === undefined) return [];
      return other.nodes
        .flatMap((node) => (isNode(node["body"]) ? getChildren(node["body"]) : []))
        .filter((each) => memberName(other, each) === member)
        .map((each) => commentBefore(other, each))
        .concat(inheritedComments(other, member));
    });
}

/** Whether a member is a method, or a property that holds a function. */
function isMethod(declaration: Declaration, member: SyntaxNode): boolean {
  if (member.type === "TSMethodSignature") return true;
  if (member["kind"] !== undefined) return member["kind"] === "method";
  const type = member["typeAnnotation"];
  return isNode(type) && isFunctionType(declaration, type["typeAnnotation"] as SyntaxNode);
}

function isFunctionType({ references }: Declaration, type: SyntaxNode): boolean {
  if (type.type === "TSFunctionType") return true;
  const alias = references.get(type["typeName"] as SyntaxNode);
  if (alias?.nodes === undefined) return false;
  return alias.nodes.some(
    (node) =>
      node.type === "TSTypeAliasDeclaration" &&
      isFunctionType(alias, node["typeAnnotation"] as SyntaxNode),
  );
}

function getChildren(node: SyntaxNode): readonly SyntaxNode[] {
  return Object.values(node).flat().filter(isNode);
}

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

const MEMBERS: ReadonlySet<string> = new Set([
  "TSPropertySignature",
  "TSMethodSignature",
  "PropertyDefinition",
  "MethodDefinition",
  "TSAbstractMethodDefinition",
]);

/** The name of a member of an interface, a class or an object type; undefined for other nodes. */
function memberName({ text }: Declaration, node: SyntaxNode): string | undefined {
  if (!MEMBERS.has(node.type)) return undefined;
  const { start, end } = node["key"] as SyntaxNode;
  const name = text.slice(start, end);
  return node["computed"] === true ? `[${name}]` : name;
}

function isPrivate(node: SyntaxNode): boolean {
  const key = node["key"];
  return node["accessibility"] === "private" || (isNode(key) && key.type === "PrivateIdentifier");
}

/** The doc comment that ends right before a declaration or a member. */
function commentBefore({ text }: Declaration, { start }: SyntaxNode): string {
  const before = text
    .slice(0, start)
    .replace(/(?:export )?(?:declare )?$/, "")
    .trimEnd();
  const begin = before.endsWith("*/") ? before.lastIndexOf("/*") : -1;
  return before.startsWith("/**", begin) ? before.slice(begin) : "";
}
