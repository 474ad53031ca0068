// Raises one limit of an entity while everything runs, and prints the limits that now hold.
// Usage: node raise-a-limit.js team-blue gpt-4.1-mini rpm:600 limits.db
import { Limit } from "zae-limiter";
import { SqliteRepository } from "zae-limiter/sqlite";

const [entityId = "team-blue", resource = "gpt-4.1-mini", text = "rpm:600", file = "limits.db"] =
  process.argv.slice(2);
const raised = Limit.parse(text);

const repository = await SqliteRepository.open(file, { create: false, principal: "operator" });

// A stored list is replaced as a whole, so keep its other limits. Limits of other names (such as
// tpm) come from the levels below, unless the list was stored with `inherit: false`.
const before = await repository.resolveLimits(entityId, resource);
const own = before?.levels.find(({ source }) => source === "entity");
const others = own?.limits.filter(({ name }) => name !== raised.name) ?? [];
const inherit = own?.inherit ?? true;
await repository.setLimits(entityId, [raised, ...others], { resource, inherit });

const after = await repository.resolveLimits(entityId, resource);
for (const limit of after?.limits ?? [])
  console.log(`${Limit.format(limit)}  from level: ${after?.sources[limit.name]}`);

await repository.close();
