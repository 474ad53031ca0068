import { ZaeLimiterError, type Repository } from "zae-limiter";
import type { Book, BucketHistory } from "../ledger/read-ledger.ts";

/** What the check of usage found: problems, or why it was not checked. */
export interface UsageCheck {
  readonly problems: readonly string[];
  readonly obstacle?: string;
}

const POLL_EVERY_MS = 500;

/** Usage is exact to the thousandth. */
const ROUNDING = 0.0005;

/** Stores may keep the time of a registration in seconds. */
const REGISTRATION_MS = 1000;

/** Compares the usage of one namespace with what was granted and settled, or says why not. */
export async function checkUsage(
  book: Book,
  { repository, startedAt }: { readonly repository: Repository; readonly startedAt: number },
  waitUpToMs: number,
): Promise<UsageCheck> {
  const { namespaceName: namespace, clock } = repository;
  if (book.memoryWorkers > 1) return skip("each worker had a store in its own memory");
  if (book.incomplete.length > 0) return skip("a worker ended in the middle of calls");
  const createdAt = (await repository.getNamespace(namespace))?.createdAt.getTime() ?? 0;
  if (createdAt + REGISTRATION_MS < startedAt)
    return skip(`the namespace ${namespace} is older than the run; name a new one`);
  const buckets = [...book.buckets.values()].filter(
    (bucket) => bucket.namespace === namespace && !isInDoubt(book, bucket),
  );
  const resources = new Set(buckets.map(({ resource }) => resource));
  for (const endMs = clock.now() + waitUpToMs; ;) {
    const usage = await readUsage(repository, resources).catch(explainMissing);
    if (typeof usage === "string") return skip(usage);
    const { used, countedUntil = Infinity } = usage;
    const problems = buckets.flatMap((bucket) => compare(bucket, used));
    const mayFollow = countedUntil < Infinity && clock.now() < endMs;
    if (problems.length > 0 && mayFollow) await clock.sleep(POLL_EVERY_MS);
    else if (problems.length === 0 || countedUntil >= book.lastAt) return { problems };
    else return skip(`it was counted until ${new Date(countedUntil).toISOString()} only`);
  }
}

function skip(obstacle: string): UsageCheck {
  return { problems: [], obstacle };
}

/** A call failed, so it may have been charged or not: to its entity, and to any parent. */
export function isInDoubt({ doubts }: Book, { entityId, isParent }: BucketHistory): boolean {
  return doubts.size > 0 && (isParent || doubts.has(entityId));
}

interface StoredUsage {
  /** Tokens by entity, resource and limit. */
  readonly used: ReadonlyMap<string, number>;
  /** On DynamoDB: until when the aggregator has counted. */
  readonly countedUntil: number | undefined;
}

function explainMissing(error: unknown): string {
  if (error instanceof ZaeLimiterError && error.code === "ERR_LIMITER_USAGE_NOT_RECORDED")
    return "the store does not record it";
  throw error;
}

/** The usage of every entity on these resources, or why it is not complete. */
async function readUsage(
  repository: Repository,
  resources: ReadonlySet<string>,
): Promise<StoredUsage | string> {
  const used = new Map<string, number>();
  let countedUntil: number | undefined;
  for (const resource of resources)
    for (let cursor: string | undefined = ""; cursor !== undefined;) {
      const query = { resource, limit: 1000, ...(cursor === "" ? {} : { cursor }) };
      const page = await repository.getUsageSnapshots(query);
      if (page.completeSince !== undefined) return "the store had to drop some of it";
      if (page.countedUntil !== undefined)
        countedUntil = Math.min(countedUntil ?? Infinity, page.countedUntil.getTime());
      // A query by resource leaves out of the counters what came by cascade.
      for (const { entityId, counters, cascaded } of page.items)
        for (const [name, tokens] of [...Object.entries(counters), ...Object.entries(cascaded)]) {
          const key = [entityId, resource, name].join("\n");
          used.set(key, (used.get(key) ?? 0) + tokens);
        }
      cursor = page.cursor;
    }
  return { used, countedUntil };
}

function compare(
  { entityId, resource, events }: BucketHistory,
  used: ReadonlyMap<string, number>,
): readonly string[] {
  const expected = new Map<string, number>();
  for (const event of events) {
    const amounts = event.kind === "grant" ? event.amounts : event.deltas;
    for (const name of event.limits.keys())
      expected.set(name, (expected.get(name) ?? 0) + (amounts[name] ?? 0));
  }
  return [...expected].flatMap(([name, tokens]) => {
    const stored = used.get([entityId, resource, name].join("\n")) ?? 0;
    if (Math.abs(stored - tokens) <= ROUNDING) return [];
    return `${entityId} on ${resource}: ${tokens} ${name} were granted and settled, but the stored usage is ${stored}.`;
  });
}
