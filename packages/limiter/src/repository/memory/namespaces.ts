import { NamespaceNotFoundError, NamespaceStateError } from "../../core/errors.ts";
import type { NamespaceInfo } from "../../core/namespace.ts";
import type { NamespaceStore } from "../store.ts";

/** Removes all data of a namespace, and returns the number of records removed. */
type Empty = (namespaceId: string) => number;

/** Namespaces by id. At most one active namespace has a given name. */
export class MemoryNamespaces implements NamespaceStore {
  readonly #byId = new Map<string, NamespaceInfo>();
  readonly #active = new Map<string, string>();
  readonly #empty: Empty;
  /** Increases whenever a namespace is registered, deleted or recovered. */
  version = 0;

  constructor(empty: Empty) {
    this.#empty = empty;
  }

  register(
    name: string,
    newId: () => string,
    nowMs: number,
  ): { readonly namespaceId: string; readonly created: boolean } {
    const held = this.#active.get(name);
    if (held !== undefined) return { namespaceId: held, created: false };
    let namespaceId = newId();
    while (this.#byId.has(namespaceId)) namespaceId = newId();
    this.#put({
      name,
      namespaceId,
      status: "active",
      createdAt: new Date(nowMs),
      deletedAt: undefined,
    });
    this.#active.set(name, namespaceId);
    return { namespaceId, created: true };
  }

  byName(name: string): NamespaceInfo | undefined {
    const id = this.#active.get(name);
    return id === undefined ? undefined : copyInfo(this.#byId.get(id)!);
  }

  byId(namespaceId: string): NamespaceInfo | undefined {
    return this.#byId.get(namespaceId);
  }

  list(): readonly NamespaceInfo[] {
    return [...this.#byId.values()]
      .map(copyInfo)
      .sort((left, right) => (left.name < right.name ? -1 : 1));
  }

  delete(name: string, nowMs: number): string | undefined {
    const info = this.byName(name);
    if (info === undefined) return undefined;
    this.#active.delete(name);
    this.#put({ ...info, status: "deleted", deletedAt: new Date(nowMs) });
    return info.namespaceId;
  }

  recover(namespaceId: string): string {
    const info = this.#byId.get(namespaceId);
    if (info === undefined) throw new NamespaceNotFoundError(namespaceId);
    if (info.status !== "deleted")
      throw new NamespaceStateError(
        info.name,
        info.status,
        "only a deleted namespace can be recovered",
      );
    if (this.#active.has(info.name))
      throw new NamespaceStateError(
        info.name,
        "active",
        "the name was registered again; delete that namespace first",
      );
    this.#active.set(info.name, namespaceId);
    this.#put({ ...info, status: "active", deletedAt: undefined });
    return info.name;
  }

  purge(
    namespaceId: string,
    options: {
      readonly onProgress?: (deletedItems: number) => void;
      readonly signal?: AbortSignal;
    },
  ): boolean {
    const info = this.#byId.get(namespaceId);
    if (info === undefined) return false;
    if (info.status === "active")
      throw new NamespaceStateError(info.name, "active", "delete it before you purge it");
    options.signal?.throwIfAborted();
    const count = this.#empty(namespaceId);
    this.#byId.delete(namespaceId);
    options.onProgress?.(count);
    return true;
  }

  #put(info: NamespaceInfo): void {
    this.#byId.set(info.namespaceId, Object.freeze(info));
    this.version += 1;
  }
}

/** A Date cannot be frozen, so every caller gets its own. */
function copyInfo(info: NamespaceInfo): NamespaceInfo {
  const { createdAt, deletedAt } = info;
  return Object.freeze({
    ...info,
    createdAt: new Date(createdAt),
    deletedAt: deletedAt === undefined ? undefined : new Date(deletedAt),
  });
}
