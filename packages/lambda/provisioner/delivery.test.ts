import { expect, it } from "vitest";
import { deliver } from "./delivery.ts";

const URL = "https://bucket.example.com/answer?signature=secret";

/** Delivers to an address that gives these answers, the last one forever. */
async function tryDelivery(...answers: readonly (number | Error)[]): Promise<{
  readonly puts: number;
  readonly pausesMs: readonly number[];
  readonly error: string | undefined;
}> {
  let puts = 0;
  const pausesMs: number[] = [];
  const put = async (): Promise<number> => {
    const answer = answers[Math.min(puts, answers.length - 1)]!;
    puts += 1;
    if (typeof answer === "number") return answer;
    throw answer;
  };
  const sleep = async (ms: number): Promise<void> => void pausesMs.push(ms);
  const error = await deliver(URL, "{}", { put, sleep }).then(
    () => undefined,
    ({ message }: Error) => message,
  );
  return { puts, pausesMs, error };
}

it("puts an answer once if it is accepted", async () => {
  expect(await tryDelivery(200)).toEqual({ puts: 1, pausesMs: [], error: undefined });
});

it("tries again after longer and longer pauses", async () => {
  const refused = new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } });
  expect(await tryDelivery(503, refused, 200)).toEqual({
    puts: 3,
    pausesMs: [250, 500],
    error: undefined,
  });
});

it.each([
  [403, "its status is 403"],
  [new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } }), "ECONNREFUSED"],
  [new DOMException("took too long", "TimeoutError"), "TimeoutError"],
  [new TypeError(`Failed to parse URL from ${URL}`), "TypeError"],
])("gives up after a few attempts, and does not reveal the address: %s", async (answer, why) => {
  expect(await tryDelivery(answer)).toEqual({
    puts: 4,
    pausesMs: [250, 500, 1000],
    error: `CloudFormation's address for the answer did not take it: ${why}.`,
  });
});
