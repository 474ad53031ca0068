import { yamlDocument } from "@zae-limiter/infra/manifest";
import { ManifestError, type ManifestDocument, type ManifestProblem } from "zae-limiter/manifest";
import type { PropertyNames } from "./property-names.ts";

/** What the properties of a resource declare. */
export interface DeclaredProperties {
  readonly documents: readonly ManifestDocument[];
  /** What is wrong with the properties, apart from what the documents say. */
  readonly problems: readonly ManifestProblem[];
}

/** Reads a value of a property, as the manifest has it under the path. */
type Reader = (value: unknown, at: Place) => unknown;

/** Where a value stands: as a property, and in the manifest. */
interface Place {
  readonly names: PropertyNames;
  readonly path: readonly string[];
  readonly property: string;
}

/** CloudFormation sends every scalar as a text. Large numbers may come as 1.0E7. */
const NUMBER = /^[+-]?\d+(\.\d+)?([eE]\+?\d+)?$/;

const asIs: Reader = (value) => value;
const number: Reader = (value) =>
  typeof value === "string" && NUMBER.test(value) ? Number(value) : value;
const truth: Reader = (value) => (value === "true" ? true : value === "false" ? false : value);

const LIMIT = object({
  Capacity: number,
  Burst: number,
  RefillAmount: number,
  RefillPeriod: number,
});
/** In the short grammar, or with a property for each number. */
const limits = named((value, at) => (isObject(value) ? LIMIT(value, at) : number(value, at)));
const level = object({ Limits: limits, Inherit: truth });
const MANIFEST = object({
  Namespace: asIs,
  System: object({
    Limits: limits,
    OnUnavailable: asIs,
    AuditRetentionDays: number,
    UsageRetentionDays: number,
  }),
  Resources: named(level),
  Entities: named(
    object({
      Name: asIs,
      Parent: asIs,
      Cascade: truth,
      // Texts, whatever they look like.
      Metadata: named(asIs),
      Resources: named(level),
    }),
  ),
});

/** Properties that say nothing about limits. */
const OTHERS: ReadonlySet<string> = new Set([
  "ServiceToken",
  "ServiceTimeout",
  "TableName",
  "NamespaceId",
  "Manifest",
]);
const SECTIONS = ["System", "Resources", "Entities"];

/**
 * Reads the properties of a resource as documents of a manifest. The table is the function's; the
 * names of the properties are added to the others.
 */
export function declaredProperties(
  properties: unknown,
  tableName: string,
  names: PropertyNames,
): DeclaredProperties {
  const given = isObject(properties) ? properties : {};
  const sections = Object.entries(given).filter(([name]) => !OTHERS.has(name));
  const content = MANIFEST(Object.fromEntries(sections), { names, path: [], property: "" });
  const { TableName, NamespaceId } = given;
  if (TableName !== undefined && TableName !== tableName)
    names.problem("TableName", `is not the table of this function, ${tableName}.`, "Leave it out.");
  if (NamespaceId !== undefined)
    names.problem("NamespaceId", "is not supported.", "Use Namespace, with its name.");
  const documents = [names.document(content), ...manifestDocument(given, names)];
  return { documents, problems: names.problems };
}

/** The document of the property that has the text of a file, if it is given and can be read. */
function manifestDocument(
  given: Readonly<Record<string, unknown>>,
  names: PropertyNames,
): readonly ManifestDocument[] {
  const { Manifest } = given;
  if (Manifest === undefined) return [];
  const others = SECTIONS.filter((name) => given[name] !== undefined);
  if (others.length > 0)
    names.problem("Manifest", `is given together with ${others.join(", ")}.`, "Give one of both.");
  if (typeof Manifest !== "string")
    names.problem("Manifest", "must be the text of a manifest file.");
  if (others.length > 0 || typeof Manifest !== "string") return [];
  try {
    return [yamlDocument(names.ofManifest, Manifest)];
  } catch (error) {
    if (!(error instanceof ManifestError)) throw error;
    names.addProblems(error.problems);
    return [];
  }
}

/** Reads properties in PascalCase as keys in snake_case; others are problems. */
function object(readers: Readonly<Record<string, Reader>>): Reader {
  return (value, at) => {
    if (!isObject(value)) return value;
    const content: Record<string, unknown> = {};
    for (const [name, inner] of Object.entries(value)) {
      const property = at.property === "" ? name : `${at.property}.${name}`;
      const reader = Object.hasOwn(readers, name) ? readers[name] : undefined;
      if (reader === undefined) {
        const known = Object.keys(readers).join(", ");
        at.names.problem(property, "is not a property that is known.", `Known are ${known}.`);
      } else {
        const key = snakeCase(name);
        content[key] = read(reader, inner, { ...at, path: [...at.path, key], property });
      }
    }
    return content;
  };
}

/** Reads a map whose keys are names that somebody chose. */
function named(reader: Reader): Reader {
  return (value, at) => {
    if (!isObject(value)) return value;
    const entries = Object.entries(value).map(([name, inner]) => {
      const place = { ...at, path: [...at.path, name], property: `${at.property}.${name}` };
      return [name, read(reader, inner, place)] as const;
    });
    return Object.fromEntries(entries);
  };
}

function read(reader: Reader, value: unknown, at: Place): unknown {
  at.names.add(at.path, at.property);
  return reader(value, at);
}

function snakeCase(name: string): string {
  return name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase();
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
