import assert from "node:assert/strict";
import {
  type Lease,
  type LeaseOfResource,
  RateLimiter,
  type RateLimiterUnavailable,
  RateLimitExceeded,
  ValidationError,
} from "zae-limiter";
import { faultyRepository } from "zae-limiter/testing";
import { call, failsWith, KEY, readLeft, RPM, TPM } from "./calls.ts";
import type { Topic, World } from "./world.ts";

/** Invalid calls of a lease that took 10 rpm and 500 tpm, and what is left after each. */
const INVALID: readonly {
  readonly what: string;
  readonly change: (lease: LeaseOfResource) => void;
  readonly remaining: Readonly<Record<string, number>>;
}[] = [
  {
    what: "settles a value that is not a number",
    change: (lease) => lease.settle({ rpm: 20, tpm: Number.NaN }),
    remaining: { rpm: 80, tpm: 500 },
  },
  {
    what: "settles a limit that does not exist",
    change: (lease) => lease.settle({ tokens: 300, tpm: 300 }),
    remaining: { rpm: 90, tpm: 700 },
  },
  {
    what: "settles a missing total of a limit that does not exist",
    change: (lease) => lease.settle({ tokens: undefined, tpm: 300 }),
    remaining: { rpm: 90, tpm: 700 },
  },
  {
    what: "settles something that is not an object",
    change: (lease) => lease.settle([300] as unknown as Record<string, number>),
    remaining: { rpm: 90, tpm: 500 },
  },
  {
    what: "adjusts by a fraction",
    change: (lease) => lease.adjust({ rpm: 0.5, tpm: 100 }),
    remaining: { rpm: 90, tpm: 400 },
  },
  {
    what: "releases more than was consumed",
    change: (lease) => lease.release({ rpm: 11, tpm: 100 }),
    remaining: { rpm: 90, tpm: 600 },
  },
];

const misspelt = (lease: Lease): void => lease.settle({ tokens: 300, tpm: 300 });

/** Promise 4: work that was done is never refunded, and what it cost is not lost. */
export const doneWorkTopic: Topic = (test) => {
  for (const missing of [undefined, null]) {
    test(`a total that is ${missing} keeps the estimate, and the result is returned`, async (world) => {
      await world.repository.setSystemDefaults([RPM, TPM]);
      const usage: { readonly total?: number } = { ...(missing === null && { total: null! }) };
      const result = await world.limiter.acquire(call({ rpm: 1, tpm: 500 }), (lease) => {
        lease.settle({ tpm: usage.total });
        assert.deepEqual(lease.consumed, { rpm: 1, tpm: 500 });
        return "the answer";
      });
      assert.equal(result, "the answer");
      assert.deepEqual(await readLeft(world), { rpm: 99, tpm: 500 });
    });
  }

  test("a total that is missing changes no other limit, and nothing that was settled before", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    await world.limiter.acquire(call({ rpm: 1, tpm: 500 }, { also: { search: {} } }), (lease) => {
      lease.settle({ tpm: 300 });
      lease.settle({ rpm: 3, tpm: undefined });
      lease.resourceLease("search").settle({ rpm: 2, tpm: undefined });
    });
    assert.deepEqual(await readLeft(world), { rpm: 97, tpm: 700 });
    assert.deepEqual(await readLeft(world, KEY, "search"), { rpm: 98, tpm: 1000 });
  });

  for (const { what, change, remaining } of INVALID) {
    test(`work that ${what} throws, and what was valid is committed`, async (world) => {
      await createFamily(world);
      let thrown: unknown;
      const error = await failsWith(ValidationError, () =>
        world.limiter.acquire(call({ rpm: 10, tpm: 500 }), (lease) => {
          try {
            change(lease);
          } catch (invalid) {
            thrown = invalid;
            throw invalid;
          }
        }),
      );
      assert.equal(error, thrown);
      assert.deepEqual(await readLeft(world), remaining);
      assert.deepEqual(await readLeft(world, "project"), remaining, "and of its parent");
    });
  }

  test("differences from before an invalid call are committed too, of every resource", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    const request = call({ rpm: 1, tpm: 500 }, { also: { search: { rpm: 1 } } });
    await failsWith(ValidationError, () =>
      world.limiter.acquire(request, (lease) => {
        lease.settle({ tpm: 200 });
        lease.resourceLease("search").settle({ rpm: 5, pages: 3 });
      }),
    );
    assert.deepEqual(await readLeft(world), { rpm: 99, tpm: 800 });
    assert.deepEqual(await readLeft(world, KEY, "search"), { rpm: 95, tpm: 1000 });
  });

  test("an error that an invalid call caused commits as well, and any other error gives back", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    const run = (work: (lease: Lease) => unknown): Promise<unknown> =>
      world.limiter.acquire(call({ rpm: 1, tpm: 500 }), work);
    await failsWith(SyntaxError, () =>
      run((lease) => {
        try {
          misspelt(lease);
        } catch (error) {
          const failed = new Error("no bookkeeping", { cause: error });
          throw new SyntaxError("the handler failed", { cause: failed });
        }
      }),
    );
    assert.deepEqual(await readLeft(world), { rpm: 99, tpm: 700 }, "wrapped");
    await failsWith(SyntaxError, () =>
      run((lease) => {
        assert.throws(() => misspelt(lease), ValidationError);
        throw new SyntaxError("something else");
      }),
    );
    await failsWith(ValidationError, () =>
      run(() => {
        throw new ValidationError("prompt", "", "must not be empty");
      }),
    );
    await failsWith(RateLimitExceeded, () => run((lease) => lease.consume({ tpm: 900 })));
    await failsWith(ValidationError, () => run((lease) => lease.consume({ tokens: 1 })));
    assert.deepEqual(await readLeft(world), { rpm: 99, tpm: 700 }, "given back");
  });

  test("an invalid call that the work handles changes nothing", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    await world.limiter.acquire(call({ rpm: 1, tpm: 500 }), (lease) => {
      assert.throws(() => lease.adjust({ rpm: 1, tpm: 0.5 }), ValidationError);
      assert.deepEqual(lease.consumed, { rpm: 1, tpm: 500 });
    });
    assert.deepEqual(await readLeft(world), { rpm: 99, tpm: 500 });
    await failsWith(ValidationError, () =>
      world.limiter.acquire(call({ rpm: 1, tpm: 100 }), (lease) => {
        let first: unknown;
        try {
          lease.settle({ rpm: 50, tokens: 1 });
        } catch (error) {
          first = error;
        }
        lease.settle({ tpm: 200 });
        throw first;
      }),
    );
    assert.deepEqual(
      await readLeft(world),
      { rpm: 98, tpm: 300 },
      "a later valid call replaces it",
    );
    await failsWith(ValidationError, () =>
      world.limiter.acquire(call({ rpm: 1 }, { also: { search: { rpm: 1 } } }), (lease) => {
        const search = lease.resourceLease("search");
        assert.throws(() => search.settle({ rpm: 50, pages: 1 }), ValidationError);
        lease.settle({ rpm: 8, tokens: 1 });
      }),
    );
    assert.deepEqual(await readLeft(world), { rpm: 90, tpm: 300 });
    assert.deepEqual(
      await readLeft(world, KEY, "search"),
      { rpm: 99, tpm: 1000 },
      "it was handled",
    );
  });

  test("if what was valid cannot be written, that is reported, and the error of the work is thrown", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    const failures: RateLimiterUnavailable[] = [];
    const limiter = new RateLimiter({
      repository: faultyRepository(world.repository, (operation) =>
        operation === "settle" ? "error-before" : undefined,
      ),
      onSettlementFailed: (error) => failures.push(error),
    });
    const error = await failsWith(ValidationError, () =>
      limiter.acquire(call({ rpm: 1, tpm: 500 }), (lease) => lease.settle({ tpm: 200, tokens: 1 })),
    );
    assert.equal(error.field, "settle.tokens");
    assert.equal(failures.length, 1);
    assert.equal(failures[0]?.code, "ERR_LIMITER_UNAVAILABLE");
    assert.deepEqual(await readLeft(world), { rpm: 99, tpm: 500 }, "nothing was refunded");
  });
};

/** The usual entity with a parent, whose limits are the same. */
async function createFamily({ repository }: World): Promise<void> {
  await repository.setSystemDefaults([RPM, TPM]);
  await repository.createEntity("project");
  await repository.createEntity(KEY, { parentId: "project", cascade: true });
}
