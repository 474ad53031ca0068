import { ValidationError } from "./errors.ts";

/** The unit that limits apply to: an API key, a project, a tenant's user. */
export interface Entity {
  /** What calls name it by. Unique in its namespace, and never changed. */
  readonly id: string;
  /** For people to read; the id if none was given. */
  readonly name: string;
  /** The entity that it belongs to; undefined if it has no parent. */
  readonly parentId: string | undefined;
  /** Whether calls of this entity also take from its parent. */
  readonly cascade: boolean;
  /** Your own data; the limiter does not read it. */
  readonly metadata: Readonly<Record<string, string>>;
  /** When it was created, by the repository's clock. */
  readonly createdAt: Date;
}

/** What can be changed about an entity. What is left out stays as it is. */
export interface EntityChange {
  /** Another name for people. */
  readonly name?: string;
  /** Replaces all metadata. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Whether calls of the entity also take from its parent. */
  readonly cascade?: boolean;
}

/** The fields that a change can name. */
export const CHANGEABLE = ["name", "metadata", "cascade"] as const;

/** The values that an entity has in the fields of a change, for the audit trail. */
export function pickFields(entity: Entity, change: EntityChange): EntityChange {
  return Object.fromEntries(
    CHANGEABLE.filter((field) => change[field] !== undefined).map((field) => [
      field,
      entity[field],
    ]),
  );
}

/** Longest display name and metadata value: ample for users, and well within any store's limits. */
const MAX_TEXT_LENGTH = 1024;
const MAX_METADATA_ENTRIES = 50;

/** Returns a display name, or throws. */
export function entityName(value: unknown): string {
  return text(value, "name");
}

/** Returns a copy of metadata whose values are all strings, or throws. */
export function entityMetadata(value: unknown): Readonly<Record<string, string>> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new ValidationError("metadata", value, "must be an object of strings");
  const entries = Object.entries(value);
  if (entries.length > MAX_METADATA_ENTRIES)
    throw new ValidationError(
      "metadata",
      entries.length,
      `must hold at most ${MAX_METADATA_ENTRIES} entries`,
    );
  return Object.freeze(
    Object.fromEntries(
      entries.map(([key, entry]) => [text(key, "metadata"), text(entry, `metadata.${key}`, 0)]),
    ),
  );
}

/** Returns whether calls also take from the parent, or throws. */
export function entityCascade(value: unknown): boolean {
  if (typeof value === "boolean") return value;
  throw new ValidationError("cascade", value, "must be true or false");
}

function text(value: unknown, field: string, least = 1): string {
  if (typeof value !== "string")
    throw new ValidationError(
      field,
      value,
      `must be a string, not ${value === null ? "null" : typeof value}`,
    );
  if (value.length < least) throw new ValidationError(field, value, "must not be empty");
  // SQLite's drivers truncate text at a NUL, and no store can keep half of a surrogate pair.
  if (value.includes("\0") || /\p{Surrogate}/u.test(value))
    throw new ValidationError(field, value, "must be well-formed text without NUL");
  if (value.length > MAX_TEXT_LENGTH)
    throw new ValidationError(
      field,
      value,
      `must not be longer than ${MAX_TEXT_LENGTH} characters`,
    );
  return value;
}
