import { Document, Scalar, visit } from "yaml";

/**
 * A manifest, as `buildManifest` returns it, as YAML. Readers of YAML 1.1 and 1.2 read the same:
 * what one of them would take for a number, a date or a boolean is quoted.
 * @example await writeFile("limits.yaml", manifestYaml(buildManifest("default", declared)));
 */
export function manifestYaml(manifest: object): string {
  const document = new Document(manifest, { compat: "yaml-1.1", aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (key, node) => {
      if (typeof node.value !== "string") return;
      if (UNREADABLE.test(node.value)) node.type = Scalar.QUOTE_DOUBLE;
      else if (key === "value" && TEXT_OF_LINES.test(node.value)) node.type = Scalar.BLOCK_LITERAL;
      else if (node.value.includes("\n")) node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  // Lines are never broken, so a search for their words finds them.
  const text = document.toString({ lineWidth: 0, blockQuote: "literal", doubleQuotedAsJSON: true });
  return text
    .replaceAll(new RegExp(SPECIAL, "gu"), escapeCharacter)
    .replaceAll(REFERENCE, REFERENCE.replace("{{", "{\\u007b"));
}

/**
 * Not printable in YAML, the end of a line to some readers, or a change of the direction in which a
 * terminal writes: only escapes are safe.
 */
const SPECIAL =
  "[\\u007F-\\u009F\\u2028\\u2029\\u202A-\\u202E\\u2066-\\u2069\\uFEFF\\uFFFE\\uFFFF]";

/** How a text begins that CloudFormation replaces by a parameter or a secret, in any template. */
const REFERENCE = "{{resolve:";

/** Also `=`, which means something to YAML 1.1, and tabs, which not every reader allows bare. */
const UNREADABLE = new RegExp(`^=$|[\\t\\r]|${SPECIAL}|\\{\\{resolve:`, "u");

/** Lines that each end, of which neither the first begins nor the last ends with a space. */
const TEXT_OF_LINES = /^[^\s][^]*[^\s]\n$/;

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
