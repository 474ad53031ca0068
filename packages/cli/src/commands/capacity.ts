import type { Command } from "commander";
import type { ResourceCapacity } from "zae-limiter";
import type { Colours } from "../output/colours.ts";
import { tableText } from "../output/table.ts";
import type { Session } from "./support/session.ts";
import { addVerb } from "./support/verb.ts";

/** Adds `capacity`, which shows how much of one limit all entities together have left. */
export function addCapacityCommand(program: Command, session: Session): void {
  addVerb(program, {
    usage: "capacity <resource> <limit-name>",
    summary: "Shows how much of one limit of a resource all entities together have left.",
    examples: ["capacity gpt-4 tpm", "capacity gpt-4 tpm --parents-only"],
  })
    .option("--parents-only", "Count only entities without a parent.")
    .action(
      async (
        resource: string,
        limitName: string,
        { parentsOnly = false }: { readonly parentsOnly?: boolean },
        command: Command,
      ) =>
        session.inNamespace(command, "existing", async ({ repository, screen }) => {
          const capacity = await repository.getResourceCapacity(resource, limitName, {
            parentsOnly,
          });
          const none = `No entity has a bucket with the limit ${limitName} on ${resource} yet.\n`;
          screen.show(capacity, () =>
            capacity.entities.length === 0 ? none : capacityText(capacity, screen.colours),
          );
        }),
    );
}

const PARENTS = "of it, parents";
const NOTE = "Parents share theirs with the entities that cascade into them.\n";

function capacityText(capacity: ResourceCapacity, colours: Colours): string {
  const { totalCapacity, totalAvailable, utilizationPct, entities } = capacity;
  const { cascadedCapacity, cascadedAvailable } = capacity;
  const rows = entities.map((entity) => [
    entity.entityId,
    entity.capacity,
    entity.available,
    entity.utilizationPct,
  ]);
  const total = ["total", totalCapacity, totalAvailable, utilizationPct];
  const headers = ["Entity", "Capacity", "Available", "Used %"];
  if (cascadedCapacity === 0) return tableText(headers, [...rows, total], colours);
  const used = ((cascadedCapacity - cascadedAvailable) / cascadedCapacity) * 100;
  const ofParents = [PARENTS, cascadedCapacity, cascadedAvailable, used];
  return tableText(headers, [...rows, total, ofParents], colours) + NOTE;
}
