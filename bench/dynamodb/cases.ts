/*
 * What every contestant is asked to do. A case names its entities, so that every contestant, the
 * one in another language included, works on the same keys in the same order.
 */

import type { Part } from "./selection.ts";

/** A load, as each contestant gets it. */
export interface Case {
  readonly id: Extract<
    Part,
    "sequential" | "hot" | "many" | "children" | "cascade" | "refusals" | "alone"
  >;
  readonly title: string;
  /** Calls that are under way at any time. */
  readonly concurrency: number;
  /** Take turns: the first call is the first one's. */
  readonly entityIds: readonly string[];
  /** Every call takes from it as well. */
  readonly parentId?: string;
  /** The limit `rpm` holds one token a day, which is gone: every call is to be refused. */
  readonly exhausted?: true;
}

/** So large that no call is ever refused; still exact for all sides. */
export const NEVER_REACHED = 1_000_000_000;

/** How large the cases are; a quick look reduces it. */
export interface CaseSizes {
  /** Calls that are under way in the concurrent cases. */
  readonly calls: number;
  readonly manyEntities: number;
  /** Where one call comes after another. */
  readonly fewEntities: number;
}

/** The loads of the comparison. */
export function cases({ calls, manyEntities, fewEntities }: CaseSizes): readonly Case[] {
  return [
    {
      id: "sequential",
      title: `one call after another, ${fewEntities} entities`,
      concurrency: 1,
      entityIds: numberNames("calm", fewEntities),
    },
    {
      id: "hot",
      title: `${calls} calls at once, one entity`,
      concurrency: calls,
      entityIds: ["hot"],
    },
    {
      id: "many",
      title: `${calls} calls at once, ${manyEntities} entities`,
      concurrency: calls,
      entityIds: numberNames("one-of-many", manyEntities),
    },
    {
      id: "children",
      title: `${calls} calls at once, ${calls} children of one parent`,
      concurrency: calls,
      entityIds: numberNames("child", calls),
      parentId: "parent",
    },
    {
      id: "cascade",
      title: `one call after another, ${fewEntities} children of one parent`,
      concurrency: 1,
      entityIds: numberNames("calm-child", fewEntities),
      parentId: "calm-parent",
    },
    {
      id: "refusals",
      title: "refusals, one after another",
      concurrency: 1,
      entityIds: ["exhausted"],
      exhausted: true,
    },
  ];
}

/** Calls that come one at a time, with idle time in between; each is always on the same entity. */
export const LONE_CASES: readonly Case[] = [
  { id: "alone", title: "a call that comes alone", concurrency: 1, entityIds: ["lonely"] },
  {
    id: "alone",
    title: "a child of a parent, alone",
    concurrency: 1,
    entityIds: ["lonely-child"],
    parentId: "lonely-parent",
  },
];

/** Does operations on the entities of a case, as many at a time as the case says. */
export function operate(
  { entityIds, concurrency }: Pick<Case, "entityIds" | "concurrency">,
  operation: (entityId: string) => Promise<void>,
): Operate {
  return async (operations) => {
    let started = 0;
    const caller = async (): Promise<void> => {
      while (started < operations) await operation(entityIds[started++ % entityIds.length]!);
    };
    await Promise.all(Array.from({ length: concurrency }, caller));
  };
}

/** Does this many operations. */
export type Operate = (operations: number) => Promise<void>;

function numberNames(name: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${name}-${index}`);
}
