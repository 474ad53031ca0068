import { RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { expect, it } from "vitest";
import { checkMeteredOptions, type MeteredOptions } from "./options.ts";
import { METERING } from "./tokens/metering.ts";

const GOOD: MeteredOptions<unknown> = {
  limiter: new RateLimiter({ repository: new MemoryRepository() }),
  entity: "key-1",
  metering: METERING.openai,
};

const mistakes: readonly (readonly [object, string])[] = [
  [
    { limiter: undefined },
    "Invalid limiter: must be a RateLimiter, such as new RateLimiter({ repository })",
  ],
  [
    { entity: undefined },
    "Invalid entity: must be the id of who makes the calls, or a function that returns it",
  ],
  [{ entity: "" }, "Invalid entity: must not be empty (got '')"],
  [{ entity: 7 }, "Invalid entity: must be a string, not number (got 7)"],
  [
    { metering: undefined },
    "Invalid metering: must say what each limit counts, such as METERING.openai or { tpm: { input: 1, output: 1 } }",
  ],
  [
    { resource: "gpt-5" },
    "Invalid resource: must be a function of the model, such as () => \"models\" (got 'gpt-5')",
  ],
  [{ onSettled: true }, "Invalid onSettled: must be a function (got true)"],
  [
    { estimator: () => ({ input: 1, output: 1 }) },
    "Invalid estimator: must be an estimator, such as learningEstimator() or { estimate: (call) => ({ input, output }) }",
  ],
  [
    { estimator: { estimate: () => ({}), learn: 1 } },
    "Invalid estimator.learn: must be a function (got 1)",
  ],
  [
    { estimator: { estimate: () => ({}), tokensOf: "x" } },
    "Invalid estimator.tokensOf: must be a function (got 'x')",
  ],
  [{ waitUpToMs: -1 }, "Invalid waitUpToMs: must be 0 or more milliseconds (got -1)"],
  [{ priority: "a b" }, "Invalid priority: "],
  [{ onUnavailable: "open" }, "Invalid onUnavailable: must be 'allow' or 'block' (got 'open')"],
  [{ overrun: "cut" }, 'Invalid overrun: must be "debt" or "stop" (got \'cut\')'],
  [{ abandoned: true }, 'Invalid abandoned: must be "counted" or "kept" (got true)'],
  [{ idleMs: 0 }, "Invalid idleMs: must be more than 0 milliseconds (got 0)"],
  [{ idleMs: NaN }, "Invalid idleMs: must be more than 0 milliseconds (got NaN)"],
  [{ idleMs: "1s" }, "Invalid idleMs: must be more than 0 milliseconds (got '1s')"],
  [{ metring: 1 }, "Invalid metring: is not an option of limitFetch; did you mean metering?"],
  [{ observer: {} }, "Invalid observer: is not an option of limitFetch; known are"],
];
it.each(mistakes)("refuses %o", (mistake, message) => {
  const check = (): void => checkMeteredOptions({ ...GOOD, ...mistake }, "limitFetch");
  expect(check).toThrow(message);
});

it("accepts everything that there is, and what only an adapter has", () => {
  checkMeteredOptions(GOOD, "limitFetch");
  checkMeteredOptions(
    {
      ...GOOD,
      entity: () => "key-1",
      resource: (model) => model,
      estimator: { estimate: () => ({ input: 1, output: 1 }) },
      waitUpToMs: 5,
      priority: "batch",
      onUnavailable: "allow",
      overrun: "stop",
      abandoned: "kept",
      idleMs: Infinity,
      onSettled: () => {},
      refusal: "throw",
    } as MeteredOptions<unknown>,
    "limitFetch",
    ["refusal"],
  );
});

it("rejects options that are not an object", () => {
  for (const options of [undefined, null, "x", []])
    expect(() => checkMeteredOptions(options as never, "limitFetch")).toThrow(
      "must be an object of options of limitFetch",
    );
});

it("throws an error with advice if the limiter itself is given, or a client calls the function itself", () => {
  const request = new Request("http://127.0.0.1/v1/messages");
  const told = { url: request.url, method: "POST", headers: request.headers };
  for (const given of [GOOD.limiter, request.url, new URL(request.url), request, told])
    expect(() => checkMeteredOptions(given as never, "limitFetch")).toThrow(
      "Invalid options: must be an object; give the client limitFetch({ limiter, entity, metering })",
    );
});
