import { readManifest, type Manifest } from "zae-limiter/manifest";
import { between, pick } from "../support/seeded/random-choice.ts";

/** Limits as the test writes them: text by name, such as `10/min:15`. */
export type SpecLimits = Readonly<Record<string, string>>;

export interface SpecLevel {
  readonly limits: SpecLimits;
  readonly inherit: boolean;
}

export interface SpecEntity {
  readonly parent?: string;
  readonly cascade?: boolean;
  readonly name?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly resources: Readonly<Record<string, SpecLevel>>;
}

/** The names of the settings of the system level, and what each may be besides its default. */
export const SETTINGS = {
  on_unavailable: ["allow", "block"],
  audit_retention_days: [7, 30, 90],
  usage_retention_days: [7, 90],
} as const;

export type Setting = keyof typeof SETTINGS;

/** What a manifest declares. Both the document and the model are made from it, apart. */
export interface Spec {
  readonly system: { readonly limits?: SpecLimits; readonly inherit?: false } & Readonly<
    Partial<Record<Setting, string | number>>
  >;
  readonly resources: Readonly<Record<string, SpecLevel>>;
  readonly entities: Readonly<Record<string, SpecEntity>>;
}

export const EMPTY: Spec = { system: {}, resources: {}, entities: {} };

/** Few names, so that manifests, drift and neighbours meet; every object has some of them. */
export const RESOURCES = ["gpt-4", "search", "constructor"] as const;
/** A parent comes before its children. */
export const ENTITIES = ["acme", "team", "valueOf", "key-1", "key-2"] as const;

type Random = () => number;

/** The manifest of a spec, read as a file is read. */
export function buildManifest(spec: Spec, namespace = "default"): Manifest {
  const content = { namespace, ...spec };
  return readManifest([{ file: "limits.yaml", content, findPosition: () => undefined }]);
}

/** Some limits, at least one. */
export function someLimits(random: Random): SpecLimits {
  const names = ["rpm", "tpm", "inherit"].filter(() => random() < 0.4);
  return Object.fromEntries(
    (names.length === 0 ? ["rpm"] : names).map((name) => {
      const burst = random() < 0.3 ? `:${between(random, 4, 5)}` : "";
      return [name, `${between(random, 1, 3)}/${pick(random, ["min", "hour"])}${burst}`];
    }),
  );
}

export function someLevel(random: Random): SpecLevel {
  return { limits: someLimits(random), inherit: random() < 0.3 };
}

/** A manifest that changes some of another one, and takes the rest over. */
export function someSpec(
  random: Random,
  before: Spec,
  parents: ReadonlyMap<string, string | undefined>,
): Spec {
  const resources = change(random, RESOURCES, before.resources, () => someLevel(random));
  const entities = change(random, ENTITIES, before.entities, (id, old) =>
    someEntity(random, id, old?.resources ?? {}, parents),
  );
  return {
    system: someSystem(random, before.system),
    resources,
    entities: closed(entities, parents),
  };
}

function someSystem(random: Random, before: Spec["system"]): Spec["system"] {
  if (random() < 0.4) return before;
  const settings = Object.entries(SETTINGS).flatMap(([name, values]) =>
    random() < 0.35 ? [[name, pick<string | number>(random, values)] as const] : [],
  );
  return {
    ...(random() < 0.5 && {
      limits: someLimits(random),
      ...(random() < 0.3 && { inherit: false as const }),
    }),
    ...Object.fromEntries(settings),
  };
}

function someEntity(
  random: Random,
  id: string,
  levels: Readonly<Record<string, SpecLevel>>,
  parents: ReadonlyMap<string, string | undefined>,
): SpecEntity {
  const resources = change(random, ["_default_", ...RESOURCES], levels, () => someLevel(random));
  const parent = someParent(random, id, parents);
  return {
    ...(parent !== undefined && { parent }),
    ...(random() < 0.3 && { cascade: random() < 0.5 }),
    ...(random() < 0.3 && { name: pick(random, ["Ada", "Bob"]) }),
    ...(random() < 0.3 && {
      metadata: random() < 0.3 ? {} : { plan: pick(random, ["gold", "free"]) },
    }),
    resources,
  };
}

/** That of the stored record, which cannot be changed; any for a record that does not exist. */
function someParent(
  random: Random,
  id: string,
  parents: ReadonlyMap<string, string | undefined>,
): string | undefined {
  if (random() < 0.5) return undefined;
  if (parents.has(id)) return parents.get(id);
  const others = ENTITIES.slice(0, (ENTITIES as readonly string[]).indexOf(id));
  return others.length === 0 ? undefined : pick(random, others);
}

/** Adds declarations of parents that are neither declared nor stored. */
function closed(
  entities: Readonly<Record<string, SpecEntity>>,
  parents: ReadonlyMap<string, string | undefined>,
): Readonly<Record<string, SpecEntity>> {
  const missing = Object.values(entities).flatMap(({ parent }) =>
    parent === undefined || Object.hasOwn(entities, parent) || parents.has(parent) ? [] : [parent],
  );
  return Object.fromEntries([
    ...Object.entries(entities),
    ...missing.map((id) => [id, { resources: {} }] as const),
  ]);
}

/** Each name keeps what it has, gets something else, or goes. */
function change<T>(
  random: Random,
  names: readonly string[],
  before: Readonly<Record<string, T>>,
  make: (name: string, old: T | undefined) => T,
): Readonly<Record<string, T>> {
  return Object.fromEntries(
    names.flatMap((name): readonly (readonly [string, T])[] => {
      const old = Object.hasOwn(before, name) ? before[name] : undefined;
      const choice = random();
      if (choice < 0.45) return old === undefined ? [] : [[name, old]];
      return choice < 0.75 ? [[name, make(name, old)]] : [];
    }),
  );
}
