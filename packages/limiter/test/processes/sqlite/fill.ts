/*
 * Takes from ever new buckets until the file cannot grow any more, and prints what happened. Run
 * under a limit of file size or on a full file system. Usage: node fill.js FILE
 */
import { Limit, RateLimiter, ZaeLimiterError } from "zae-limiter";
import { SqliteRepository } from "zae-limiter/sqlite";

/** More than any limit that a test sets lets through. */
const MOST_CALLS = 100_000;

const repository = await SqliteRepository.open(process.argv[2]!);
const limiter = new RateLimiter({ repository });
let granted = 0;
let error: unknown;
while (error === undefined && granted < MOST_CALLS) {
  const entityId = `${"key-".padEnd(200, "x")}${granted}`;
  try {
    await limiter.acquire({
      entityId,
      resource: "r",
      consume: { rpm: 1 },
      limits: [Limit.perMinute("rpm", 10)],
    });
    granted += 1;
  } catch (caught) {
    error = caught;
  }
}
const { entities } = await repository.getResourceCapacity("r", "rpm");
const { code, message } =
  error instanceof ZaeLimiterError ? error : { code: undefined, message: String(error) };
console.log(JSON.stringify({ granted, stored: entities.length, code, message }));
await repository.close();
