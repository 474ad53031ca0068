import { Document, parse, type Node, type Tags, type YAMLMap, type YAMLSeq } from "yaml";
import { validationError } from "../aws-call.ts";

/** A value of a template, with or without functions in it. */
export type TemplateValue = unknown;
type Fields = Readonly<Record<string, TemplateValue>>;

/** A resource as a template declares it. */
export interface DeclaredResource {
  readonly Type: string;
  readonly Condition?: string;
  readonly DependsOn?: string | readonly string[];
  readonly DeletionPolicy?: "Delete" | "Retain" | "RetainExceptOnCreate";
  readonly UpdateReplacePolicy?: "Delete" | "Retain";
  readonly Properties?: Fields;
}

/** A template, parsed. */
export interface ParsedTemplate {
  readonly Description?: string;
  readonly Parameters: Readonly<Record<string, Fields>>;
  readonly Conditions: Readonly<Record<string, TemplateValue>>;
  readonly Resources: Readonly<Record<string, DeclaredResource>>;
  readonly Outputs: Readonly<Record<string, Fields>>;
}

/** The most bytes of a template in a request. */
const MOST_BYTES = 51_200;

/** Functions as YAML may write them: `!Sub text`, for `{ "Fn::Sub": "text" }`. */
const SHORT_FORMS: Tags = ["Ref", "Condition", "GetAtt", "Sub", "If", "Equals", "And", "Or", "Not"]
  .concat("Join", "Select", "Split")
  .flatMap((name) => {
    const full = name === "Ref" || name === "Condition" ? name : `Fn::${name}`;
    const node = (value: unknown): Node => {
      const isPath = name === "GetAtt" && typeof value === "string";
      return new Document().createNode({ [full]: isPath ? value.split(".") : value });
    };
    const resolve = (value: string | YAMLMap | YAMLSeq): Node =>
      node(typeof value === "string" ? value : value.toJSON());
    return [
      { tag: `!${name}`, resolve },
      { tag: `!${name}`, collection: "seq" as const, resolve },
      { tag: `!${name}`, collection: "map" as const, resolve },
    ] as never;
  });

/** Parses a template, JSON or YAML. */
export function parsedTemplate(body: string, toJson = jsonOfTemplate): ParsedTemplate {
  if (Buffer.byteLength(body) > MOST_BYTES)
    throw validationError(
      `1 validation error detected: Value at 'templateBody' failed to satisfy constraint: Member must have length less than or equal to ${MOST_BYTES}`,
    );
  const template = JSON.parse(toJson(body)) as Partial<ParsedTemplate> | null;
  if (template?.Resources === undefined || Object.keys(template.Resources).length === 0)
    throw validationError("Template format error: At least one Resources member must be defined.");
  return {
    Parameters: {},
    Conditions: {},
    Outputs: {},
    ...template,
    Resources: template.Resources,
  };
}

/** A template as JSON, as CloudFormation reads it: YAML 1.1, and functions in either form. */
export function jsonOfTemplate(body: string): string {
  const isJson = body.trimStart().startsWith("{");
  return isJson ? body : JSON.stringify(parse(body, { customTags: SHORT_FORMS, version: "1.1" }));
}

/** A parameter as a request gives it. */
export interface GivenParameter {
  readonly ParameterKey: string;
  readonly ParameterValue?: string;
  readonly UsePreviousValue?: string;
}

/** The value of each parameter: given, the stack's where the request says so, or the default. */
export function parameterValues(
  { Parameters }: ParsedTemplate,
  given: readonly GivenParameter[],
  previous: Readonly<Record<string, string>>,
): Record<string, string> {
  const byKey = new Map(given.map((parameter) => [parameter.ParameterKey, parameter]));
  const unknown = [...byKey.keys()].filter((key) => !(key in Parameters));
  if (unknown.length > 0)
    throw validationError(`Parameters: [${unknown.join(", ")}] do not exist in the template`);
  const values: Record<string, string> = {};
  const missing: string[] = [];
  for (const [key, declared] of Object.entries(Parameters)) {
    const parameter = byKey.get(key);
    if (parameter?.UsePreviousValue === "true") {
      if (previous[key] === undefined)
        throw validationError(
          `Invalid input for parameter key ${key}. Cannot specify usePreviousValue as true for a parameter key not in the previous template`,
        );
      values[key] = previous[key];
    } else if (parameter?.ParameterValue !== undefined) values[key] = parameter.ParameterValue;
    else if (declared["Default"] !== undefined)
      values[key] = `${declared["Default"] as string | number}`;
    else missing.push(key);
    if (values[key] !== undefined) checkParameter(key, values[key], declared);
  }
  if (missing.length > 0)
    throw validationError(`Parameters: [${missing.join(", ")}] must have values`);
  return values;
}

function checkParameter(key: string, value: string, declared: Fields): void {
  const allowed = declared["AllowedValues"] as readonly unknown[] | undefined;
  if (allowed !== undefined && !allowed.map(String).includes(value))
    throw validationError(`Parameter '${key}' must be one of AllowedValues`);
  const pattern = declared["AllowedPattern"] as string | undefined;
  if (pattern !== undefined && !new RegExp(`^(?:${pattern})$`).test(value))
    throw validationError(`Parameter '${key}' must match pattern ${pattern}`);
  if (declared["Type"] !== "Number") return;
  const { MinValue: least = -Infinity, MaxValue: most = Infinity } = declared;
  if (value === "" || Number(value) < Number(least) || Number(value) > Number(most))
    throw validationError(`Parameter '${key}' must be a number from ${least} to ${most}`);
}

/** The values that functions of a template refer to. */
export interface Scope {
  readonly template: ParsedTemplate;
  readonly parameters: Readonly<Record<string, string>>;
  readonly pseudo: Readonly<Record<string, string>>;
  /** The id of a resource, or one of its attributes; undefined while it is not known. */
  readonly attribute: (logicalId: string, attribute?: string) => string | undefined;
}

/** Stands for what is known only when the stack has been changed. */
export const NOT_KNOWN_YET = "{{changeSet:KNOWN_AFTER_APPLY}}";

/** The resources whose conditions hold. */
export function presentResources(scope: Scope): ReadonlyMap<string, DeclaredResource> {
  return new Map(
    Object.entries(scope.template.Resources).filter(
      ([, { Condition }]) => Condition === undefined || holds(Condition, scope),
    ),
  );
}

/** Whether a condition of the template holds. */
export function holds(name: string, scope: Scope): boolean {
  const condition = scope.template.Conditions[name];
  if (condition === undefined)
    throw validationError(`Template format error: Unresolved condition dependency ${name}`);
  return resolveIt(condition, scope) === true;
}

/** A value with its functions evaluated; undefined for `AWS::NoValue`. */
export function resolveIt(value: TemplateValue, scope: Scope): unknown {
  if (Array.isArray(value))
    return value.map((item) => resolveIt(item, scope)).filter((item) => item !== undefined);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  const [name, argument] = entries[0] ?? [];
  if (
    entries.length === 1 &&
    (name === "Ref" || name === "Condition" || name!.startsWith("Fn::"))
  ) {
    // "Condition" also is a field of policies, where it holds an object.
    if (name !== "Condition" || typeof argument === "string") return apply(name!, argument, scope);
  }
  const fields = entries.map(([key, field]) => [key, resolveIt(field, scope)] as const);
  return Object.fromEntries(fields.filter(([, field]) => field !== undefined));
}

function apply(name: string, argument: unknown, scope: Scope): unknown {
  const list = (): readonly unknown[] => resolveIt(argument, scope) as readonly unknown[];
  switch (name) {
    case "Ref":
      return reference(String(argument), scope);
    case "Condition":
      return holds(String(argument), scope);
    case "Fn::GetAtt": {
      const [id, ...path] = Array.isArray(argument) ? argument : String(argument).split(".");
      return getAttribute(String(id), path.join("."), scope);
    }
    case "Fn::Sub":
      return substitute(argument, scope);
    case "Fn::If": {
      const [condition, whenTrue, whenFalse] = argument as readonly unknown[];
      return resolveIt(holds(String(condition), scope) ? whenTrue : whenFalse, scope);
    }
    case "Fn::Equals":
      return String(list()[0]) === String(list()[1]);
    case "Fn::And":
      return list().every((item) => item === true);
    case "Fn::Or":
      return list().some((item) => item === true);
    case "Fn::Not":
      return list()[0] !== true;
    case "Fn::Join": {
      const [separator, parts] = list() as readonly [string, readonly unknown[] | string];
      return (typeof parts === "string" ? [parts] : parts).join(separator);
    }
    case "Fn::Select": {
      const [index, items] = list() as readonly [number | string, readonly unknown[]];
      return items[Number(index)];
    }
    case "Fn::Split": {
      const [separator, text] = list() as readonly [string, string];
      return text.split(separator);
    }
    default:
      throw validationError(`Template format error: ${name} is not known to this model`);
  }
}

function reference(name: string, scope: Scope): unknown {
  if (name === "AWS::NoValue") return undefined;
  const declared = scope.template.Parameters[name];
  if (declared !== undefined) return scope.parameters[name];
  return scope.pseudo[name] ?? getAttribute(name, undefined, scope);
}

function getAttribute(id: string, attribute: string | undefined, scope: Scope): string {
  if (!(id in scope.template.Resources))
    throw validationError(
      `Template format error: Unresolved resource dependencies [${id}] in the Resources block of the template`,
    );
  return scope.attribute(id, attribute) ?? NOT_KNOWN_YET;
}

function substitute(argument: unknown, scope: Scope): string {
  const [text, values] = (Array.isArray(argument) ? argument : [argument, {}]) as [string, Fields];
  return text.replaceAll(/\$\{(!?)([^}]+)\}/g, (_, literal: string, name: string) => {
    if (literal === "!") return `\${${name}}`;
    if (name in values) return String(resolveIt(values[name], scope));
    const [id, ...path] = name.split(".");
    return path.length === 0
      ? String(reference(name, scope))
      : getAttribute(id!, path.join("."), scope);
  });
}

/** The resources in an order in which each comes after those that it refers to. */
export function inOrder(resources: ReadonlyMap<string, DeclaredResource>): readonly string[] {
  const order = new Set<string>();
  const visit = (id: string, path: readonly string[]): void => {
    const declared = resources.get(id);
    if (declared === undefined || order.has(id)) return;
    if (path.includes(id))
      throw validationError(`Circular dependency between resources: [${path.join(", ")}]`);
    const after = [declared.DependsOn ?? []].flat().concat(referredTo(declared.Properties));
    for (const other of after) if (other !== id) visit(other, [...path, id]);
    order.add(id);
  };
  for (const id of resources.keys()) visit(id, []);
  return [...order];
}

function referredTo(value: TemplateValue): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(referredTo);
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, argument]: [string, unknown]) => {
    if (name === "Ref") return [String(argument)];
    if (name === "Fn::GetAtt")
      return [String(Array.isArray(argument) ? argument[0] : String(argument).split(".")[0])];
    if (name !== "Fn::Sub") return referredTo(argument);
    const [text, values] = (Array.isArray(argument) ? argument : [argument, {}]) as [
      string,
      Fields,
    ];
    const names = [...text.matchAll(/\$\{([^!}][^}]*)\}/g)].map(([, id]) => id!.split(".")[0]!);
    return names.concat(referredTo(values));
  });
}
