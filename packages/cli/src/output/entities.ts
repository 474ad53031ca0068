import type { Entity } from "zae-limiter";
import type { Colours } from "./colours.ts";
import { fieldsText, tableText } from "./table.ts";
import { timeText } from "./text.ts";

/** One entity, field by field. */
export function entityText(
  { id, name, parentId, cascade, metadata, createdAt }: Entity,
  colours: Colours,
): string {
  const notes = Object.entries(metadata).map(([key, value]) => `${key}=${value}`);
  return fieldsText(
    [
      ["Entity", id],
      ["Name", name],
      ["Parent", parentId],
      ["Cascade", cascade],
      ["Metadata", notes.join(", ")],
      ["Created", timeText(createdAt)],
    ],
    colours,
  );
}

/** Entities as a table. */
export function entitiesText(entities: readonly Entity[], colours: Colours): string {
  const rows = entities.map(({ id, name, parentId, cascade, createdAt }) => [
    id,
    name,
    parentId,
    cascade,
    timeText(createdAt),
  ]);
  return tableText(["Entity", "Name", "Parent", "Cascade", "Created"], rows, colours);
}
