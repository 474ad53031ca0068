import * as fc from "fast-check";
import type { RateLimit } from "../../src/core/limit-kinds.ts";
import { Limit } from "../../src/core/limit.ts";
import type {
  DeclaredEntity,
  DeclaredLevel,
  DeclaredLimits,
  DeclaredSystem,
} from "../../src/repository/declared-limits.ts";
import { smallLimit, validLimit } from "./arbitraries.ts";

/** What a file of limits may say, and what it declares by that. */
export interface WrittenManifest {
  readonly content: Readonly<Record<string, unknown>>;
  readonly declared: DeclaredLimits;
}

/** A part of a file, and what it declares. */
interface Written<Declared> {
  readonly content: unknown;
  readonly declared: Declared;
}

/** Valid manifests of the namespace "team-a", with every notation of a limit. */
export function writtenManifest(): fc.Arbitrary<WrittenManifest> {
  return fc
    .record({
      system: fc.option(writtenSystem(), { nil: undefined }),
      resources: getMap(resource(), writtenLevel()),
      entities: getMap(id(), writtenEntity()),
    })
    .map(({ system, resources, entities }) => ({
      content: {
        namespace: "team-a",
        ...(system !== undefined && { system: system.content }),
        resources: resources.content,
        entities: entities.content,
      },
      declared: {
        ...(system !== undefined &&
          Object.keys(system.declared).length > 0 && { system: system.declared }),
        resources: resources.declared,
        entities: entities.declared,
      },
    }));
}

function writtenSystem(): fc.Arbitrary<Written<DeclaredSystem>> {
  const days = fc.integer({ min: 1, max: 3650 });
  return fc
    .record(
      {
        limits: writtenLimits(),
        onUnavailable: fc.constantFrom("allow" as const, "block" as const),
        auditRetentionDays: days,
        usageRetentionDays: days,
      },
      { requiredKeys: [] },
    )
    .map(({ limits, ...settings }) => ({
      content: {
        ...(limits && { limits: limits.content }),
        ...(settings.onUnavailable && { on_unavailable: settings.onUnavailable }),
        ...(settings.auditRetentionDays && { audit_retention_days: settings.auditRetentionDays }),
        ...(settings.usageRetentionDays && { usage_retention_days: settings.usageRetentionDays }),
      },
      declared: { ...(limits && { limits: limits.declared }), ...settings },
    }));
}

function writtenEntity(): fc.Arbitrary<Written<DeclaredEntity>> {
  // A parent that no generated entity has as its id, so there are no circles.
  const parent = id().map((name) => `above-${name}`);
  const metadata = fc.dictionary(fc.string({ minLength: 1, maxLength: 8 }), fc.string(), {
    maxKeys: 3,
  });
  return fc
    .record(
      {
        name: fc.string({ minLength: 1, maxLength: 20 }),
        parentId: parent,
        cascade: fc.boolean(),
        metadata,
        resources: getMap(fc.oneof(fc.constant("_default_"), resource()), writtenLevel()),
      },
      { requiredKeys: [] },
    )
    .map(({ parentId, resources, ...record }) => ({
      content: {
        ...record,
        ...(parentId !== undefined && { parent: parentId }),
        ...(resources && { resources: resources.content }),
      },
      declared: {
        ...record,
        ...(parentId !== undefined && { parentId }),
        resources: resources?.declared ?? {},
      },
    }));
}

function writtenLevel(): fc.Arbitrary<Written<DeclaredLevel>> {
  return fc
    .record({ limits: writtenLimits(), inherit: fc.option(fc.boolean(), { nil: undefined }) })
    .map(({ limits, inherit }) => ({
      content: { limits: limits.content, ...(inherit !== undefined && { inherit }) },
      declared: { limits: limits.declared, inherit: inherit ?? true },
    }));
}

function writtenLimits(): fc.Arbitrary<Written<readonly RateLimit[]>> {
  return fc
    .uniqueArray(limitName(), { minLength: 1, maxLength: 4 })
    .chain((names) => fc.tuple(...names.map((name) => writtenLimit(name))))
    .map((written) => ({
      content: Object.fromEntries(written.map(({ content, declared }) => [declared.name, content])),
      declared: written.map(({ declared }) => declared),
    }));
}

/** One limit in one of the notations that can say it. */
function writtenLimit(name: string): fc.Arbitrary<Written<RateLimit>> {
  const perMinute = smallLimit(name).map(({ capacity }) => Limit.perMinute(name, capacity));
  return fc
    .oneof(smallLimit(name), validLimit(name), perMinute)
    .chain((declared) =>
      fc.constantFrom(...notations(declared)).map((content) => ({ content, declared })),
    );
}

function notations({ name, capacity, refillAmount, refillPeriodSeconds }: RateLimit): unknown[] {
  const limit = { name, capacity, refillAmount, refillPeriodSeconds };
  const period = { refill_period: refillPeriodSeconds };
  const isPerMinute = refillPeriodSeconds === 60;
  const isPlain = capacity === refillAmount;
  return [
    Limit.format(limit).slice(name.length + 1),
    { capacity, refill_amount: refillAmount, ...period },
    { capacity: refillAmount, burst: capacity, ...period },
    { capacity: 1, burst: capacity, refill_amount: refillAmount, ...period },
    ...(isPerMinute ? [{ capacity: refillAmount, burst: capacity }] : []),
    ...(isPlain ? [{ capacity, ...period }] : []),
    ...(isPlain && isPerMinute ? [capacity, `${capacity}`, { capacity }] : []),
  ];
}

function getMap<Declared>(
  key: fc.Arbitrary<string>,
  value: fc.Arbitrary<Written<Declared>>,
): fc.Arbitrary<Written<Readonly<Record<string, Declared>>>> {
  return fc
    .uniqueArray(fc.tuple(key, value), { maxLength: 3, selector: ([name]) => name })
    .map((entries) => ({
      content: Object.fromEntries(entries.map(([name, { content }]) => [name, content])),
      declared: Object.fromEntries(entries.map(([name, { declared }]) => [name, declared])),
    }));
}

/** Names that every object has, and keys of a manifest. */
const AWKWARD = ["constructor", "toString", "limits", "resources", "null", "true"];

function limitName(): fc.Arbitrary<string> {
  return fc.oneof(fc.stringMatching(/^[A-Za-z][A-Za-z0-9_.-]{0,8}$/), fc.constantFrom(...AWKWARD));
}

function resource(): fc.Arbitrary<string> {
  return fc.oneof(
    fc.stringMatching(/^[A-Za-z][A-Za-z0-9_./:-]{0,8}$/),
    fc.constantFrom(...AWKWARD),
  );
}

function id(): fc.Arbitrary<string> {
  return fc.oneof(
    fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_.:@-]{0,8}$/),
    fc.constantFrom(...AWKWARD, "007", "1e3"),
  );
}
