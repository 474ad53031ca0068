/*
 * DynamoDB replies to statements in their order. What stands between may not: then the image of one
 * bucket would be taken for that of another, and the outcome of one call for that of another.
 */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Limit, RateLimiter } from "zae-limiter";
import type { DynamoRepository } from "zae-limiter/dynamodb";
import { seededRandom } from "zae-limiter/testing";
import { call, take } from "../../support/calls.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";
import { pick } from "../../support/seeded/random-choice.ts";
import { SleeplessClock } from "../../support/sleepless-clock.ts";

const START_MS = Date.UTC(2030, 0, 1);
const SHARED = "BatchExecuteStatement";
const ENTITIES = ["a", "b", "c", "d"];
const ROUNDS = Number(process.env["ROUNDS"] ?? 25);

describeWithEngine("replies to statements in another order", (engine) => {
  const table = useProxiedTable(engine);
  const warned = vi.fn<(message: string | Error, options: unknown) => void>();
  let clock: SleeplessClock;

  beforeEach(() => {
    clock = new SleeplessClock(START_MS);
    warned.mockReset();
    vi.spyOn(process, "emitWarning").mockImplementation(warned);
  });
  afterEach(() => void vi.restoreAllMocks());

  const openLimiter = async (
    namespace?: string,
  ): Promise<{ limiter: RateLimiter; repository: DynamoRepository }> => {
    const repository = await table.open(namespace, { clock, refusalMemoryMs: 0 });
    return { limiter: new RateLimiter({ repository }), repository };
  };

  it("are recognized, each call is decided once, and requests are not shared any more", async () => {
    const { limiter, repository } = await openLimiter();
    await repository.setSystemDefaults([Limit.perMinute("rpm", 60)]);
    const takeAll = async (): Promise<readonly string[]> =>
      table.listOperations(() =>
        Promise.all(ENTITIES.map((entity, index) => take(limiter, { rpm: index + 1 }, entity))),
      );
    await takeAll();
    table.proxy.decide = ({ operation }) =>
      operation === SHARED ? { reordered: (replies) => replies.toReversed() } : undefined;
    expect(await takeAll()).toEqual([SHARED, ...ENTITIES.map(() => "UpdateItem")]);
    expect(warned.mock.calls).toEqual([
      [
        expect.stringMatching(/ \(its replies are not in the order of the statements\)\. /),
        { code: "WARN_LIMITER_REQUESTS_NOT_SHARED" },
      ],
    ]);
    await clock.advance(1000);
    expect(await takeAll()).toEqual(ENTITIES.map(() => "UpdateItem"));
    for (const [index, entity] of ENTITIES.entries()) {
      expect(await table.consumed(repository, entity)).toBe(3 * (index + 1));
      // One came back meanwhile.
      expect(await limiter.available(entity, "r")).toEqual({ rpm: 60 - 3 * (index + 1) + 1 });
    }
  });

  it(
    "charge each grant once and grant no more than there is, whatever others have taken",
    { timeout: 60_000 + 2000 * ROUNDS },
    async () => {
      for (let seed = 1; seed <= ROUNDS; seed += 1) {
        const random = seededRandom(seed);
        table.proxy.decide = () => undefined;
        const namespace = `n${seed}`;
        const [ours, others] = [await openLimiter(namespace), await openLimiter(namespace)];
        const limit = random() < 0.5 ? Limit.perDay("rpm", 100) : Limit.perSecond("rpm", 100);
        await ours.repository.setSystemDefaults([limit]);
        const granted = new Map(ENTITIES.map((entity) => [entity, 0]));
        const tryTake = async (
          { limiter }: { readonly limiter: RateLimiter },
          entity: string,
        ): Promise<void> => {
          const rpm = pick(random, [1, 20, 60, 90]);
          const result = await limiter.tryAcquire(call({ rpm }, entity));
          if (result.granted) granted.set(entity, granted.get(entity)! + rpm);
        };
        const all = async (work: (entity: string) => Promise<void>): Promise<void> =>
          void (await Promise.all(ENTITIES.map(work)));
        await all((entity) => tryTake(ours, entity));
        // Makes some of our images old, so that conditions fail.
        await all(async (entity) => {
          if (random() < 0.5) await tryTake(others, entity);
        });
        await clock.advance(pick(random, [0, 300]));
        table.proxy.decide = ({ operation }) =>
          operation === SHARED ? { reordered: (replies) => shuffle(replies, random) } : undefined;
        await all((entity) => tryTake(ours, entity));
        await all((entity) => tryTake(ours, entity));
        table.proxy.decide = () => undefined;
        for (const entity of ENTITIES) {
          const consumed = await table.consumed(ours.repository, entity);
          expect({ seed, entity, consumed }).toEqual({
            seed,
            entity,
            consumed: granted.get(entity),
          });
          const { rpm } = await others.limiter.available(entity, "r");
          expect(rpm, `seed ${seed}`).toBeGreaterThanOrEqual(0);
          expect(await ours.limiter.available(entity, "r"), `seed ${seed}`).toEqual({ rpm });
        }
        for (const { repository } of [ours, others]) await repository.close();
      }
      expect(warned.mock.calls.length).toBeGreaterThan(ROUNDS / 2);
    },
  );
});

function shuffle<T>(list: readonly T[], random: () => number): readonly T[] {
  const left = [...list];
  return list.map(() => left.splice(Math.floor(random() * left.length), 1)[0]!);
}
