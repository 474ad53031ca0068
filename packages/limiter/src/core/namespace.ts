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
