/**
 * An `active` namespace serves calls, a `deleted` one can be recovered or purged, and the purge of
 * a `purging` one can only be completed.
 */
export type NamespaceStatus = "active" | "deleted" | "purging";

/** One tenant: its name, and the opaque id under which its data is stored. */
export interface NamespaceInfo {
  /** The name that it is opened by. Another namespace may have it after a deletion. */
  readonly name: string;
  /** Unique, and never used again; data is stored under it. */
  readonly namespaceId: string;
  /** Whether it serves calls, can be recovered, or is being purged. */
  readonly status: NamespaceStatus;
  /** When it was registered. */
  readonly createdAt: Date;
  /** When it was deleted; undefined while it is active. */
  readonly deletedAt: Date | undefined;
}

/** The namespace of a repository that is opened without one. */
export const DEFAULT_NAMESPACE = "default";

/**
 * The namespace id of a repository that was opened with `create: false` before its namespace was
 * registered. No namespace has this id.
 */
export const NO_NAMESPACE = "";

const ID_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const ID_LENGTH = 11;

/**
 * Makes the opaque id of a namespace from random numbers in [0, 1). It never begins with '-',
 * because command lines would take it for an option.
 */
export function newNamespaceId(random: () => number): string {
  let id = "";
  while (id.length < ID_LENGTH) {
    const letter = ID_ALPHABET[Math.floor(random() * ID_ALPHABET.length)]!;
    if (id !== "" || letter !== "-") id += letter;
  }
  return id;
}
