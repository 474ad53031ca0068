// Prints what an entity used on each of the last seven days, and in all of them together.
// Usage: node last-week.js team-blue limits.db
import { SqliteRepository } from "zae-limiter/sqlite";

const [entityId = "team-blue", file = "limits.db"] = process.argv.slice(2);
const DAY_MS = 24 * 60 * 60 * 1000;

const repository = await SqliteRepository.open(file, { create: false });
const end = new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS); // midnight in UTC, when today began
const start = new Date(end.getTime() - 7 * DAY_MS);
const week = { entityId, window: "daily", start, end } as const;

const days = await repository.getUsageSnapshots({ ...week, limit: 1000 });
for (const { windowStart, resource, requests, counters } of days.items) {
  const day = windowStart.toISOString().slice(0, 10);
  console.log(`${day}  ${resource}  requests: ${requests}  tokens: ${counters.tpm ?? 0}`);
}

const { requests, total } = await repository.getUsageSummary(week);
console.log(`${entityId} in 7 days  requests: ${requests}  tokens: ${total.tpm ?? 0}`);
await repository.close();
