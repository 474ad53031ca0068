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

function capacityText(
  { totalCapacity, totalAvailable, utilizationPct, entities }: ResourceCapacity,
  colours: Colours,
): string {
  const rows = entities.map((entity) => [
    entity.entityId,
    entity.capacity,
    entity.available,
    entity.utilizationPct,
  ]);
  const total = ["total", totalCapacity, totalAvailable, utilizationPct];
  return tableText(["Entity", "Capacity", "Available", "Used %"], [...rows, total], colours);
}
