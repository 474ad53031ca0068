/** What the library records; stores of other versions may hold more. */
export type AuditAction =
  | "entity_created"
  | "entity_deleted"
  | "limits_set"
  | "limits_deleted"
  | "namespace_registered"
  | "namespace_deleted"
  | "namespace_recovered"
  | "namespace_purged";

/** One change, who made it and when. */
export interface AuditEvent {
  /** A ULID: sorts by time. */
  readonly eventId: string;
  readonly timestamp: Date;
  /** The entity; `$SYSTEM` and `$RESOURCE:{resource}` for the other levels. */
  readonly entityId: string;
  readonly action: AuditAction | (string & {});
  readonly principal: string | undefined;
  readonly resource: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;
}

/** The pseudo entity of changes to the system level and to namespaces. */
export const SYSTEM_AUDIT_ID = "$SYSTEM";

/** The pseudo entity of changes to a resource's defaults. */
export function resourceAuditId(resource: string): string {
  return `$RESOURCE:${resource}`;
}

/** Crockford's alphabet: ULIDs of later times sort later. */
const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const RANDOM_LENGTH = 16;
const TIME_LENGTH = 10;

/** The time part of a ULID. */
export function ulidTime(timeMs: number): string {
  let text = "";
  for (let rest = Math.max(0, timeMs); text.length < TIME_LENGTH; rest = Math.floor(rest / 32))
    text = ALPHABET[rest % 32]! + text;
  return text;
}

/**
 * A ULID. Within one millisecond the order is that of `sequence`, so that "newest first" is true to
 * the event.
 */
export function ulid(timeMs: number, sequence: number, random: () => number): string {
  let tail = "";
  for (let rest = sequence; tail.length < 4; rest = Math.floor(rest / 32))
    tail = ALPHABET[rest % 32]! + tail;
  while (tail.length < RANDOM_LENGTH) tail += ALPHABET[Math.floor(random() * 32)]!;
  return ulidTime(timeMs) + tail;
}
