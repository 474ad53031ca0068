import { execFileSync } from "node:child_process";
import { fileURLToPath, pathToFileURL } from "node:url";
import type * as library from "zae-limiter";
import { Limit, type Amounts } from "zae-limiter";
import type * as memory from "zae-limiter/memory";
import {
  CONTESTANTS,
  NEVER_REACHED,
  oneOfEach,
  oneOfRpm,
  ours,
  type Run,
} from "../memory-contestants.ts";

/** The last commit without quotas. */
const BEFORE_QUOTAS = "97f3ee5b";

/** Rates before there were quotas, rates, quotas and sessions. */
export const QUOTA_CONTESTANTS = {
  "rates before, one limit": () => before(oneOfRpm),
  "rates, one limit": () => ours(oneOfRpm, { recordUsage: true }),
  "quota, one limit": () => ours(oneOfRpm, { recordUsage: true, toLimit: toQuota }),
  "session, one limit": () => ours(oneOfRpm, { recordUsage: true, toLimit: toSession }),
  "rates before, two limits": () => before(oneOfEach),
  "rates, two limits": () => ours(oneOfEach, { recordUsage: true }),
  "quotas, two limits": () => ours(oneOfEach, { recordUsage: true, toLimit: toQuota }),
} as const satisfies Readonly<Record<string, () => Run | Promise<Run>>>;

/** The contestants of all benchmarks in memory. */
export const ALL_CONTESTANTS = { ...CONTESTANTS, ...QUOTA_CONTESTANTS };

/** Builds the library without quotas, unless that was done, and returns where it is. */
export function buildEarlier(): string {
  const tool = fileURLToPath(new URL("../../../tools/earlier-build.mjs", import.meta.url));
  return execFileSync(process.execPath, [tool, BEFORE_QUOTAS], { encoding: "utf8" }).trim();
}

/** A quota that begins again at midnight. */
export function toQuota(name: string): Limit {
  return Limit.quota(name, NEVER_REACHED, { every: "day", zone: "Europe/Berlin" });
}

function toSession(name: string): Limit {
  return Limit.session(name, NEVER_REACHED, { windowSeconds: 5 * 3600 });
}

/** Rates in the build without quotas. */
async function before(amounts: () => Amounts): Promise<Run> {
  const dist = pathToFileURL(`${buildEarlier()}/`);
  const load = async (file: string): Promise<unknown> => import(new URL(file, dist).href);
  return ours(amounts, {
    recordUsage: true,
    build: {
      library: (await load("index.js")) as typeof library,
      memory: (await load("repository/memory/index.js")) as typeof memory,
    },
  });
}
