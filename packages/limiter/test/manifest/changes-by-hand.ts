import type { Repository } from "zae-limiter";
import { pick } from "../support/seeded/random-choice.ts";
import type { Content, Owned } from "./model.ts";
import {
  ENTITIES,
  RESOURCES,
  SETTINGS,
  someLevel,
  someLimits,
  type Setting,
  type Spec,
} from "./spec.ts";
import { buildLimits } from "./stored-content.ts";

/** A change that is made by hand, without a manifest. */
export interface HandChange {
  readonly story: string;
  /** The model's name for what was changed. */
  readonly touched: string;
  readonly after: Content;
  make(repository: Repository): Promise<unknown>;
}

/** Changes something that belongs to manifests, or a record. */
export function handChange(random: () => number, name: string, before: Content): HandChange {
  if (name === "limits") return systemLimits(random, before);
  if (Object.hasOwn(SETTINGS, name)) return setting(random, name as Setting, before);
  if (before.records.has(name) && random() < 0.9) return record(random, name, before);
  return level(random, name.includes(" ") ? name : `entity ${name} on _default_`, before);
}

/** Changes or creates something that belongs to no manifest; undefined if all of it does. */
export function neighbourChange(
  random: () => number,
  before: Content,
  { owned, last }: { readonly owned: Owned; readonly last: Spec },
): HandChange | undefined {
  if (random() < 0.2) {
    // A manifest that is applied again may declare a parent for it, which it would lack then.
    const id = ENTITIES.find(
      (entity) => !before.records.has(entity) && !Object.hasOwn(last.entities, entity),
    );
    if (id !== undefined) return newRecord(id, before);
  }
  if (random() < 0.2 && !owned.has("limits")) return systemLimits(random, before);
  const names = [
    ...RESOURCES.map((resource) => `resource ${resource}`),
    ...["other", ...ENTITIES].flatMap((id) => RESOURCES.map((name) => `entity ${id} on ${name}`)),
  ].filter((name) => !owned.has(name));
  return names.length === 0 ? undefined : level(random, pick(random, names), before);
}

function systemLimits(random: () => number, before: Content): HandChange {
  const limits = random() < 0.3 ? undefined : someLimits(random);
  return {
    story: `system limits ${JSON.stringify(limits)}`,
    touched: "system",
    after: { ...before, systemLimits: limits },
    make: (repository) =>
      limits === undefined
        ? repository.deleteSystemDefaults({ keepSettings: true })
        : repository.setSystemDefaults(buildLimits(limits)),
  };
}

function setting(random: () => number, name: Setting, before: Content): HandChange {
  const value = pick<string | number>(random, SETTINGS[name]);
  const option = {
    on_unavailable: "onUnavailable",
    audit_retention_days: "auditRetentionDays",
    usage_retention_days: "usageRetentionDays",
  }[name];
  return {
    story: `${name} ${value}`,
    touched: "system",
    after: { ...before, settings: { ...before.settings, [name]: value } },
    make: (repository) => repository.setSystemDefaults(undefined, { [option]: value }),
  };
}

function level(random: () => number, name: string, before: Content): HandChange {
  const [kind, first = "", , resource = ""] = name.split(" ");
  const next = before.levels.has(name) && random() < 0.3 ? undefined : someLevel(random);
  const levels = new Map(before.levels);
  if (next === undefined) levels.delete(name);
  else levels.set(name, next);
  return {
    story: `${name} ${JSON.stringify(next)}`,
    touched: name,
    after: { ...before, levels },
    make: async (repository) => {
      if (next === undefined)
        return kind === "resource"
          ? repository.deleteResourceDefaults(first)
          : repository.deleteLimits(first, { resource });
      const { limits, inherit } = next;
      return kind === "resource"
        ? repository.setResourceDefaults(first, buildLimits(limits), { inherit })
        : repository.setLimits(first, buildLimits(limits), { resource, inherit });
    },
  };
}

function record(random: () => number, id: string, before: Content): HandChange {
  const old = before.records.get(id)!;
  const change = pick(random, [
    { name: "By hand" },
    { cascade: !old.cascade },
    { metadata: { plan: "by hand" } },
  ]);
  return {
    story: `record ${id} ${JSON.stringify(change)}`,
    touched: `record ${id}`,
    after: { ...before, records: new Map([...before.records, [id, { ...old, ...change }]]) },
    make: (repository) => repository.updateEntity(id, change),
  };
}

function newRecord(id: string, before: Content): HandChange {
  const created = { name: id, parent: undefined, cascade: false, metadata: {} };
  return {
    story: `record ${id}`,
    touched: `record ${id}`,
    after: { ...before, records: new Map([...before.records, [id, created]]) },
    make: (repository) => repository.createEntity(id),
  };
}
