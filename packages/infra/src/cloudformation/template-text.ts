import { Document, isCollection, Scalar, visit, YAMLMap, YAMLSeq, type Node } from "yaml";
import type { Value } from "./template.ts";

/** How a template is printed. */
export interface TextOptions {
  /** The comment above the template, line by line. */
  readonly comment: readonly string[];
  /** The longest value in one line, as JSON; as YAML it is about a third shorter. */
  readonly longestLine: number;
}

/** A template as YAML. */
export function templateText(template: object, { comment, longestLine }: TextOptions): string {
  // CloudFormation reads YAML 1.1, where an unquoted date is not a string.
  const document = new Document(undefined, { version: "1.1" });
  document.commentBefore = comment.map((line) => ` ${line}`).join("\n");
  const sections = new YAMLMap();
  for (const [name, section] of Object.entries(template)) {
    const pair = document.createPair(name, toNode(section as Value, SECTION, longestLine));
    sections.add(pair);
  }
  document.contents = sections;
  quoteInLines(sections);
  // Strings are never broken, so a search for their words finds them. An indent of two spaces would
  // make the template of a stack too long.
  return document.toString({
    lineWidth: 0,
    flowCollectionPadding: false,
    indent: 1,
    indentSeq: false,
  });
}

/** The depth of a section, and the least depth of the values within it. */
const SECTION = 0;
const WITHIN = 1;

/**
 * Prints a value as YAML: functions in their short form, and small values in one line. Without
 * both, the template would be too long.
 */
function toNode(value: Value, depth: number, longest: number): Node {
  if (typeof value !== "object") return new Scalar(value);
  const called = Array.isArray(value)
    ? undefined
    : toCall(value as { [name: string]: Value }, longest);
  if (called !== undefined) return called;
  const node = Array.isArray(value) ? new YAMLSeq() : new YAMLMap();
  if (node instanceof YAMLMap)
    for (const [name, each] of Object.entries(value))
      node.set(new Scalar(name), toNode(each, depth + 1, longest));
  else for (const each of value as readonly Value[]) node.add(toNode(each, depth + 1, longest));
  node.flow = depth >= WITHIN && JSON.stringify(value).length <= longest;
  return node;
}

/** The short form of a function; undefined for any other value. */
function toCall(value: { readonly [name: string]: Value }, longest: number): Node | undefined {
  const [entry, ...others] = Object.entries(value);
  if (entry === undefined || others.length > 0) return undefined;
  const [name, argument] = entry;
  if (name === "Ref" || (name === "Condition" && typeof argument === "string"))
    return addTag(`!${name}`, new Scalar(argument));
  if (!name.startsWith("Fn::")) return undefined;
  const tag = `!${name.slice("Fn::".length)}`;
  if (name === "Fn::GetAtt") return addTag(tag, new Scalar((argument as string[]).join(".")));
  const node = toNode(argument, WITHIN, longest);
  if (isCollection(node)) node.flow = JSON.stringify(argument).length <= longest;
  return addTag(tag, node);
}

function addTag(tag: string, node: Node): Node {
  (node as Scalar | YAMLMap | YAMLSeq).tag = tag;
  return node;
}

/**
 * Quotes texts with a colon, or a question mark at their beginning, where a value is written in one
 * line. They need no quotes in YAML 1.2, but older readers take them for keys.
 */
function quoteInLines(node: Node): void {
  visit(node, {
    Collection: (_, collection) => {
      if (collection.flow !== true) return undefined;
      visit(collection, {
        Scalar: (_key, scalar) => {
          if (typeof scalar.value === "string" && /^\?|:/.test(scalar.value))
            scalar.type = Scalar.QUOTE_DOUBLE;
        },
      });
      return visit.SKIP;
    },
  });
}
