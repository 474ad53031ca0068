import { NamespaceNotFoundError, NamespaceStateError, type NamespaceInfo } from "zae-limiter";
import type { NamespaceStore, PurgeOptions } from "zae-limiter/backend";

/** Namespaces by id. At most one active namespace has a given name. */
export class MapNamespaces implements NamespaceStore {
  readonly #namespaces = new Map<string, NamespaceInfo>();
  readonly #removeData: (namespaceId: string) => void;

  constructor(removeData: (namespaceId: string) => void) {
    this.#removeData = removeData;
  }

  register(
    name: string,
    newId: () => string,
    nowMs: number,
  ): { readonly namespaceId: string; readonly created: boolean } {
    const active = this.byName(name);
    if (active !== undefined) return { namespaceId: active.namespaceId, created: false };
    let namespaceId = newId();
    while (this.#namespaces.has(namespaceId)) namespaceId = newId();
    const createdAt = new Date(nowMs);
    this.#put({ name, namespaceId, status: "active", createdAt, deletedAt: undefined });
    return { namespaceId, created: true };
  }

  byName(name: string): NamespaceInfo | undefined {
    return this.list().find((info) => info.name === name && info.status === "active");
  }

  byId(namespaceId: string): NamespaceInfo | undefined {
    return this.#namespaces.get(namespaceId);
  }

  list(): readonly NamespaceInfo[] {
    return [...this.#namespaces.values()]
      .map((info) => Object.freeze(structuredClone(info)))
      .sort((left, right) => (left.name < right.name ? -1 : 1));
  }

  delete(name: string, nowMs: number): string | undefined {
    const info = this.byName(name);
    if (info !== undefined) this.#put({ ...info, status: "deleted", deletedAt: new Date(nowMs) });
    return info?.namespaceId;
  }

  recover(namespaceId: string): string {
    const info = this.byId(namespaceId);
    if (info === undefined) throw new NamespaceNotFoundError(namespaceId);
    const { name, status } = info;
    if (status !== "deleted")
      throw new NamespaceStateError(name, status, "only a deleted namespace can be recovered");
    if (this.byName(name) !== undefined)
      throw new NamespaceStateError(name, "active", "the name was registered again");
    this.#put({ ...info, status: "active", deletedAt: undefined });
    return name;
  }

  purge(namespaceId: string, { signal, onProgress }: PurgeOptions): boolean {
    const info = this.byId(namespaceId);
    if (info === undefined) return false;
    if (info.status === "active")
      throw new NamespaceStateError(info.name, "active", "delete it before you purge it");
    signal?.throwIfAborted();
    this.#removeData(namespaceId);
    onProgress?.(1);
    return this.#namespaces.delete(namespaceId);
  }

  #put(info: NamespaceInfo): void {
    this.#namespaces.set(info.namespaceId, Object.freeze(info));
  }
}
