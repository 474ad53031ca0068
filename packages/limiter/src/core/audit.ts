/** The actions this version records. Other versions may have stored further ones. */
export type AuditAction =
  | "entity_created"
  | "entity_updated"
  | "entity_deleted"
  | "entity_erased"
  | "limits_set"
  | "limits_deleted"
  | "namespace_registered"
  | "namespace_deleted"
  | "namespace_recovered"
  | "namespace_purged";

/** One recorded change: what was done, by whom and when. */
export interface AuditEvent {
  /** A ULID, so events sort by time. */
  readonly eventId: string;
  /** When the change was made. */
  readonly timestamp: Date;
  /** The entity that changed, or `$SYSTEM` or `$RESOURCE:{resource}` for the other levels. */
  readonly entityId: string;
  /** What was done. Data of a later version may have actions that this one does not know. */
  readonly action: AuditAction | (string & {});
  /** Who did it: the call's principal, or else the one in the repository's options. */
  readonly principal: string | undefined;
  /** The resource that the change was about; undefined if it was not about one. */
  readonly resource: string | undefined;
  /** What else was recorded, such as the limits that were set. */
  readonly details: Readonly<Record<string, unknown>>;
}

/** The pseudo entity under which changes to the system level and to namespaces are filed. */
export const SYSTEM_AUDIT_ID = "$SYSTEM";

/** The pseudo entity under which changes to a resource's defaults are filed. */
export function resourceAuditId(resource: string): string {
  return `$RESOURCE:${resource}`;
}

/** Crockford's base 32. Its characters are in ASCII order, so later ULIDs sort later. */
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
 * A ULID. Events of the same millisecond sort by `sequence`, so that "newest first" holds for them
 * too.
 */
export function ulid(timeMs: number, sequence: number, random: () => number): string {
  let tail = "";
  for (let rest = sequence; tail.length < 4; rest = Math.floor(rest / 32))
    tail = ALPHABET[rest % 32]! + tail;
  while (tail.length < RANDOM_LENGTH) tail += ALPHABET[Math.floor(random() * 32)]!;
  return ulidTime(timeMs) + tail;
}
