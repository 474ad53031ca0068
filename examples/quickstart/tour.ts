import {
  Limit,
  RateLimiter,
  type AcquireRequest,
  type LimitStatus,
  type RateLimitExceeded,
  type Repository,
} from "zae-limiter";

/**
 * Prints one line of the tour. The tour awaits it, so that a test can inspect the repository after
 * each line.
 */
export type Print = (line: string) => void | Promise<void>;

const MODEL = "gpt-4";
const PROJECT = "project-apollo";
const WEB = "key-web";
const BATCH = "key-batch";

/**
 * Shows what a limiter does, in five steps. The requested amounts are chosen here; everything that
 * is printed is read back from the repository.
 */
export async function tour(repository: Repository, print: Print): Promise<void> {
  await configure(repository, print);
  const limiter = new RateLimiter({ repository });
  await grantAndSettle(limiter, repository, print);
  await refuse(limiter, print);
  await wait(limiter, repository, print);
  await stopAtParent(limiter, print);
  await report(repository, print);
}

/** The project has a small limit, so that a few calls exhaust it; each of its keys has plenty. */
async function configure(repository: Repository, print: Print): Promise<void> {
  await repository.setSystemDefaults([Limit.perMinute("rpm", 60), Limit.perMinute("tpm", 6000)]);
  await repository.createEntity(PROJECT);
  await repository.createEntity(WEB, { parentId: PROJECT, cascade: true });
  await repository.createEntity(BATCH, { parentId: PROJECT, cascade: true });
  await repository.setLimits(PROJECT, [Limit.perMinute("rpm", 5)], { resource: MODEL });

  await print("The stored limits (requests per minute, tokens per minute):");
  const { limits } = await repository.getSystemDefaults();
  await print(`  system default   ${limitTexts(limits)}`);
  const own = await repository.getLimits(PROJECT, { resource: MODEL });
  const children = await repository.getChildren(PROJECT);
  await print(
    `  ${PROJECT}   ${limitTexts(own)}   shared by ${children.map(({ id }) => id).join(" and ")}`,
  );
}

async function grantAndSettle(
  limiter: RateLimiter,
  repository: Repository,
  print: Print,
): Promise<void> {
  await title(print, "1. A call is granted on an estimate");
  await limiter.acquire(
    { entityId: WEB, resource: MODEL, consume: { rpm: 1, tpm: 500 } },
    async (lease) => {
      await print(`  ${WEB} takes ${amounts(lease.consumed)} before the call. Left:`);
      await printBalances(repository, WEB, print);

      await title(
        print,
        "2. The answer was longer than estimated: the real cost is settled, into debt",
      );
      // Enough debt that it is still there on a slow machine, and little enough to wait for.
      lease.settle({ tpm: 6150 });
      await print(`  ${WEB} settles ${amounts(lease.consumed)} after the call. Left:`);
    },
  );
  await printBalances(repository, WEB, print);
}

async function refuse(limiter: RateLimiter, print: Print): Promise<void> {
  await title(print, "3. The next call is refused until refill has paid off the debt");
  await printRefusal(
    await expectRefusal(limiter, { entityId: WEB, resource: MODEL, consume: { rpm: 1 } }),
    print,
  );
}

async function wait(limiter: RateLimiter, repository: Repository, print: Print): Promise<void> {
  const { clock } = repository;
  const request = { entityId: WEB, resource: MODEL, consume: { rpm: 1 }, waitUpToMs: 5000 };
  await title(print, "4. The same call is granted when it may wait");
  const startedMs = clock.now();
  await limiter.acquire(request, async (lease) => {
    const waitedMs = clock.now() - startedMs;
    await print(
      `  ${WEB} may wait ${request.waitUpToMs} ms, and is granted ${amounts(lease.consumed)} ` +
        `after ${waitedMs} ms. Left:`,
    );
  });
  await printBalances(repository, WEB, print);
}

async function stopAtParent(limiter: RateLimiter, print: Print): Promise<void> {
  await title(print, "5. A parent's limit stops its child");
  const request = { entityId: BATCH, resource: MODEL, consume: { rpm: 1 } };
  let granted = 0;
  let verdict = await limiter.tryAcquire(request);
  for (; verdict.granted; verdict = await limiter.tryAcquire(request)) {
    await verdict.lease.commit();
    granted += 1;
  }
  await print(`  ${BATCH} is granted ${granted} calls, each also taken from ${PROJECT}, then:`);
  await printRefusal(verdict.refusal, print);
  const own = verdict.refusal.passed.find(
    (status) => status.entityId === BATCH && status.limitName === "rpm",
  );
  if (own !== undefined)
    await print(
      `  ${BATCH} itself still has ${balance(own.limitName, own.available, own.limit.capacity)}`,
    );
}

async function report(repository: Repository, print: Print): Promise<void> {
  await title(print, "What was used, as recorded");
  for (const entityId of [WEB, BATCH, PROJECT]) {
    const { requests, total } = await repository.getUsageSummary({ entityId, resource: MODEL });
    await print(`  ${entityId.padEnd(16)} ${requests} requests   ${amounts(total)}`);
  }
}

async function expectRefusal(
  limiter: RateLimiter,
  request: AcquireRequest,
): Promise<RateLimitExceeded> {
  const verdict = await limiter.tryAcquire(request);
  if (!verdict.granted) return verdict.refusal;
  await verdict.lease.rollback();
  throw new Error(
    "The call was granted, but the tour expects a refusal. Were other limits stored than it set?",
  );
}

async function printRefusal(refusal: RateLimitExceeded, print: Print): Promise<void> {
  for (const status of refusal.violations)
    await print(`  refused by ${status.limitName} of ${status.entityId} (${origin(status)})`);
  const { limitName, available, limit, requested } = refusal.primaryViolation;
  const asked =
    requested === 0 ? "a limit in debt refuses every call" : `the call needs ${requested}`;
  await print(`  which has ${balance(limitName, available, limit.capacity)}: ${asked}`);
  await print(`  retry in ${refusal.retryAfterSeconds} s (if nothing else is taken meanwhile)`);
}

async function printBalances(
  repository: Repository,
  entityId: string,
  print: Print,
): Promise<void> {
  for (const { limitName, available, capacityMilli } of await repository.getBuckets(entityId, {
    resource: MODEL,
  })) {
    const note = available < 0 ? "   (in debt)" : "";
    await print(`    ${balance(limitName, available, capacityMilli / 1000)}${note}`);
  }
}

async function title(print: Print, text: string): Promise<void> {
  await print("");
  await print(text);
}

function origin({ source, resource }: LimitStatus): string {
  if (source === "entity") return `its own limit on ${resource}`;
  return source === "system" ? "the system default" : `the limit of level ${source}`;
}

function limitTexts(limits: readonly Limit[]): string {
  return limits.map((limit) => Limit.format(limit)).join("   ");
}

function balance(limitName: string, available: number, capacity: number): string {
  return `${limitName} ${available} of ${capacity}`;
}

function amounts(byLimit: Readonly<Record<string, number>>): string {
  return Object.entries(byLimit)
    .map(([name, amount]) => `${amount} ${name}`)
    .join(", ");
}
