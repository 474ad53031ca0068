/**
 * `active` serves; `deleted` can be recovered or purged; `purging` can only be purged to its end.
 */
export type NamespaceStatus = "active" | "deleted" | "purging";

/** One tenant: a name and the opaque id that its data is stored under. */
export interface NamespaceInfo {
  readonly name: string;
  readonly namespaceId: string;
  readonly status: NamespaceStatus;
  readonly createdAt: Date;
  readonly deletedAt: Date | undefined;
}

/** The namespace of a repository that names none. */
export const DEFAULT_NAMESPACE = "default";

/**
 * The id of a namespace that was not registered when its repository was opened with `create:
 * false`. No namespace has it.
 */
export const NO_NAMESPACE = "";

const ID_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const ID_LENGTH = 11;

/**
 * Makes the opaque id of a namespace from random numbers in [0, 1). It never begins with '-', which
 * command lines take for an option.
 */
export function newNamespaceId(random: () => number): string {
  let id = "";
  while (id.length < ID_LENGTH) {
    const letter = ID_ALPHABET[Math.floor(random() * ID_ALPHABET.length)]!;
    if (id !== "" || letter !== "-") id += letter;
  }
  return id;
}
