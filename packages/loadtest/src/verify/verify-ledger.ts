import { Limit, ValidationError, type RateLimit, type Repository } from "zae-limiter";
import { readBook, type Book, type BucketEvent } from "../ledger/read-ledger.ts";
import { checkBound } from "./bound.ts";
import { checkUsage, isInDoubt } from "./usage.ts";

/** What a verification found. */
export interface LedgerReport {
  /** Whether no promise was broken. */
  readonly passed: boolean;
  /** How many buckets were checked, those of parents included. */
  readonly buckets: number;
  /** How many grants were checked. */
  readonly grants: number;
  /** How close the run came to the bound of a bucket: 1 is all that a limit allows. */
  readonly closest: number;
  /** The promises that were broken, one sentence each. */
  readonly problems: readonly string[];
  /** What was not checked, and why; and whether the run proves little. */
  readonly notes: readonly string[];
}

/** How a ledger is verified. */
export interface VerifyOptions {
  /** How long to wait for the aggregator of a DynamoDB table to count. @default 60000 */
  readonly waitUpToMs?: number;
}

/** Below this, a limiter that grants too much would probably not have been noticed. */
const CLOSE = 0.7;

/** More of one kind would hide the others. */
const MOST_PROBLEMS = 50;

/** Buckets whose limits are compared with the stored ones: a few requests each on DynamoDB. */
const MOST_COMPARED = 200;

const WAIT_MS = 60_000;

/**
 * Checks the promises on what the workers of a run recorded: no bucket gave more than its capacity
 * and refill over any interval, and the stored usage is what was granted and settled. Without a
 * repository, usage is not checked.
 *
 * @example
 * const report = await verifyLedger("./out", await openRepository("sqlite:./limits.db"));
 * if (!report.passed) console.error(report.problems.join("\n"));
 */
export async function verifyLedger(
  folder: string,
  repository?: Repository,
  { waitUpToMs = WAIT_MS }: VerifyOptions = {},
): Promise<LedgerReport> {
  if (!(waitUpToMs >= 0 && Number.isFinite(waitUpToMs)))
    throw new ValidationError("waitUpToMs", waitUpToMs, "must be 0 or more milliseconds");
  const book = await readBook(folder);
  const { closest, problems } = checkBuckets(book);
  const notes = listNotes(book, closest);
  if (repository === undefined) notes.push("Usage was not checked: there is no repository.");
  else
    for (const [namespace, startedAt] of book.startedAt) {
      if ((await repository.getNamespace(namespace)) === undefined) {
        const why =
          book.memoryWorkers > 0
            ? "the store was in the memory of a worker"
            : `the repository has no namespace ${namespace}`;
        notes.push(`Usage was not checked: ${why}.`);
        continue;
      }
      const own =
        repository.namespaceName === namespace ? repository : await repository.namespace(namespace);
      const usage = await checkUsage(book, { repository: own, startedAt }, waitUpToMs);
      problems.push(...usage.problems, ...(await compareLimits(book, own)));
      if (usage.obstacle !== undefined) notes.push(`Usage was not checked: ${usage.obstacle}.`);
    }
  const { grants } = book;
  const shown = problems.slice(0, MOST_PROBLEMS);
  if (shown.length < problems.length) shown.push(`And ${problems.length - shown.length} more.`);
  const passed = problems.length === 0;
  return { passed, buckets: book.buckets.size, grants, closest, problems: shown, notes };
}

function checkBuckets({ buckets }: Book): {
  readonly closest: number;
  readonly problems: string[];
} {
  const problems: string[] = [];
  let closest = 0;
  for (const { entityId, resource, events } of buckets.values())
    for (const name of new Set(events.flatMap(listRates))) {
      const check = checkBound(name, events);
      closest = Math.max(closest, check.closest);
      if (check.worst === undefined) continue;
      const { at, level, bound } = check.worst;
      problems.push(
        `${entityId} on ${resource}: ${(level - bound).toFixed(3)} ${name} more were granted than the ${bound.toFixed(3)} of capacity and refill, at ${new Date(at).toISOString()}.`,
      );
    }
  return { closest: Math.min(1, closest), problems };
}

/** Windows fill all at once, so what one pass over the time finds holds for rates only. */
function listRates({ limits }: BucketEvent): readonly string[] {
  return [...limits.values()].flatMap((limit) => (isRate(limit) ? [limit.name] : []));
}

function isRate(limit: Limit): limit is RateLimit {
  return limit.kind === undefined || limit.kind === "rate";
}

function listNotes(book: Book, closest: number): string[] {
  const notes: string[] = [];
  if (closest < CLOSE)
    notes.push(
      `This run proves little: it never came closer to a bound than ${Math.round(closest * 100)} %. Raise the rate, or lower the limits.`,
    );
  const events = [...book.buckets.values()].flatMap((bucket) => bucket.events);
  if (events.some(({ limits }) => [...limits.values()].some((limit) => !isRate(limit))))
    notes.push("Quotas and sessions were not checked, but for their usage.");
  if (book.memoryWorkers > 1)
    notes.push(`Each of ${book.memoryWorkers} workers had a store of its own, checked by itself.`);
  if (book.tornLines > 0) notes.push(`Lines that were cut off, and left out: ${book.tornLines}.`);
  if (book.incomplete.length > 0)
    notes.push(`${book.incomplete.join(", ")}: ended in the middle of calls.`);
  const doubtful = [...book.buckets.values()].filter((bucket) => isInDoubt(book, bucket)).length;
  if (doubtful > 0)
    notes.push(`Buckets with calls of unknown outcome, whose usage was not checked: ${doubtful}.`);
  return notes;
}

/**
 * The bound is that of the limits of the decisions, so these have to be the stored ones. While a
 * run changes limits, its workers may still remember others.
 */
async function compareLimits(book: Book, repository: Repository): Promise<readonly string[]> {
  if (book.hasChanges) return [];
  const problems: string[] = [];
  const decided = [...book.buckets.values()].filter(
    ({ namespace, stored }) => namespace === repository.namespaceName && stored !== undefined,
  );
  for (const { entityId, resource, stored = [] } of decided.slice(0, MOST_COMPARED)) {
    const resolved = await repository.resolveLimits(entityId, resource);
    const limits = resolved?.limits.map((limit) => Limit.format(limit)) ?? [];
    if (limits.toSorted().join() === stored.toSorted().join()) continue;
    problems.push(
      `${entityId} on ${resource}: the last decision was made with ${stored.join(", ")}, but ${limits.join(", ") || "no limit"} is stored.`,
    );
  }
  return problems;
}
