import { entityMetadata, entityName } from "../core/entity.ts";
import { configResource, DEFAULT_RESOURCE, entityId } from "../core/identifiers.ts";
import type { DeclaredEntity, DeclaredLevel } from "../repository/declared-limits.ts";
import { distinct, IN_QUOTES, adviseName, type DocumentValue, type KnownKeys } from "./document.ts";
import { readBoolean, readLevel } from "./read-limits.ts";

const ENTITY: KnownKeys = {
  owner: "an entity",
  keys: ["name", "parent", "cascade", "metadata", "resources"],
  advice:
    "Write limits of an entity under `resources`, then `_default_` or a resource, then `limits`.",
};

/** Reads the entities of all documents. One entity may be spread over several of them. */
export function readEntities(
  sections: readonly DocumentValue[],
): Readonly<Record<string, DeclaredEntity>> {
  const byId = new Map<string, DocumentValue[]>();
  for (const entity of sections.flatMap((section) => section.entries("of entities by id") ?? [])) {
    const places = byId.get(entity.key);
    if (places === undefined) byId.set(entity.key, [entity]);
    else places.push(entity);
  }
  const parents = new Map<string, DocumentValue>();
  const entities = [...byId].map(([id, places]) => {
    places[0]?.checkKey(entityId);
    const fields = places.flatMap((place) => place.fields(ENTITY) ?? []);
    const record = distinct(fields.filter(({ key }) => key !== "resources"));
    const parent = record.get("parent");
    if (parent !== undefined) parents.set(id, parent);
    const resources = fields.filter(({ key }) => key === "resources");
    return [id, { ...readRecord(record), resources: readResources(resources, configResource) }];
  });
  refuseCircles(parents);
  return Object.fromEntries(entities) as Readonly<Record<string, DeclaredEntity>>;
}

/** Reads levels by resource; `check` is the core's check of a resource name. */
export function readResources(
  sections: readonly DocumentValue[],
  check: (name: unknown) => string,
): Readonly<Record<string, DeclaredLevel>> {
  const entries = sections.flatMap((section) => section.entries("of resources by name") ?? []);
  const levels = [...distinct(entries)].flatMap(([resource, entry]) => {
    entry.checkKey(check, (wrong) =>
      wrong === DEFAULT_RESOURCE ? DEFAULT_ADVICE : adviseName(check)(wrong),
    );
    const level = readLevel(entry);
    return level === undefined ? [] : [[resource, level] as const];
  });
  return Object.fromEntries(levels);
}

const DEFAULT_ADVICE =
  "Write limits for all resources under `system`, or `_default_` under the `resources` of an entity.";

function readRecord(fields: ReadonlyMap<string, DocumentValue>): Omit<DeclaredEntity, "resources"> {
  const parentId = fields.get("parent")?.check(
    (value) => entityId(value),
    adviseName((value) => entityId(value), "Write the id of an entity, or leave it out."),
  );
  const cascade = fields.get("cascade") && readBoolean(fields.get("cascade")!);
  const name = fields.get("name")?.check(entityName, adviseText);
  const metadata = fields.get("metadata") && readMetadata(fields.get("metadata")!);
  return {
    ...(parentId !== undefined && { parentId }),
    ...(cascade !== undefined && { cascade }),
    ...(name !== undefined && { name }),
    ...(metadata !== undefined && { metadata }),
  };
}

function readMetadata(metadata: DocumentValue): Readonly<Record<string, string>> | undefined {
  // Elsewhere an empty section means nothing; here it would delete what is stored.
  if (metadata.value === null) {
    metadata.refuse(
      "must be a map of texts by name, not null",
      "Write `{}` to remove all metadata, or leave the key out to keep what is stored.",
    );
    return undefined;
  }
  const entries = metadata.entries("of texts by name");
  if (entries === undefined) return undefined;
  const checked = entries.map((entry) =>
    entry.check(
      (value) => entityMetadata({ [entry.key]: value }),
      (wrong) => (isText(entry.key) ? adviseText(wrong) : adviseText(entry.key)),
    ),
  );
  if (checked.includes(undefined)) return undefined;
  return metadata.check(
    (value) => entityMetadata(value),
    () => "Keep the most important ones here, and the others in a database of your own.",
  );
}

function isText(value: string): boolean {
  try {
    return entityName(value) === value;
  } catch {
    return false;
  }
}

function adviseText(wrong: unknown): string {
  if (typeof wrong === "number" || typeof wrong === "boolean") return IN_QUOTES;
  if (typeof wrong !== "string" || wrong === "") return "Write a text, or leave it out.";
  return /\0|\p{Surrogate}/u.test(wrong)
    ? "Remove NUL and halves of surrogate pairs."
    : "Shorten it.";
}

/** The most entities of a circle that a message names. */
const MOST_NAMED = 5;

/** An entity that is above itself could never be created: parents come first. */
function refuseCircles(parents: ReadonlyMap<string, DocumentValue>): void {
  const seen = new Set<string>();
  for (const start of parents.keys()) {
    const chain = new Set<string>();
    let id: unknown = start;
    while (typeof id === "string" && parents.has(id) && !seen.has(id)) {
      seen.add(id);
      chain.add(id);
      id = parents.get(id)!.value;
    }
    if (typeof id !== "string" || !chain.has(id)) continue;
    const circle = [...chain].slice([...chain].indexOf(id));
    const named = circle.slice(0, MOST_NAMED);
    const path = [...named, ...(named.length < circle.length ? ["…"] : []), id].join(" → ");
    parents
      .get(id)!
      .refuse(
        circle.length === 1
          ? "an entity cannot be its own parent"
          : `the parents make a circle: ${path}`,
        circle.length === 1
          ? "Leave `parent` out, or name another entity."
          : "Leave `parent` out of one of them.",
      );
  }
}
