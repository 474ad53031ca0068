import type { ResourceChange, StackEvent } from "@zae-limiter/infra";
import type { Colours } from "./colours.ts";
import { tableText } from "./table.ts";

const ACTIONS: Readonly<Record<ResourceChange["action"], string>> = {
  add: "add",
  import: "adopt",
  modify: "change",
  replace: "REPLACE",
  "replace-if": "change, or REPLACE",
  remove: "REMOVE",
};

/** The planned changes, as a table. */
export function changesText(changes: readonly ResourceChange[], colours: Colours): string {
  const rows = changes.map(({ action, logicalId, resourceType, because }) => [
    ACTIONS[action],
    logicalId,
    resourceType,
    because.join(", "),
  ]);
  return tableText(["Action", "Resource", "Type", "Because of"], rows, colours);
}

/** One event of a stack in a line. */
export function eventText({ logicalId, resourceType, status, reason }: StackEvent): string {
  const why = reason === undefined ? "" : `: ${reason}`;
  return `${status}  ${logicalId} (${resourceType})${why}`;
}
