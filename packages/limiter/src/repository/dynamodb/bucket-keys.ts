import { bucketKey, type BucketKey } from "./bucket-key.ts";
import type { Families, Family } from "./families.ts";

/**
 * Keys remembered with one family. Whoever makes resources up must not fill the memory: beyond, a
 * key is made for each call.
 */
const MAX_KEYS = 64;

/**
 * The keys of buckets, made once for as long as the family of their entity is remembered: a hot
 * bucket's key would be made for every call.
 */
export class BucketKeys {
  readonly #namespaceId: string;
  readonly #families: Families;
  readonly #known = new WeakMap<Family, Map<string, BucketKey>>();

  constructor(namespaceId: string, families: Families) {
    this.#namespaceId = namespaceId;
    this.#families = families;
  }

  /** The key of shard 0. */
  of(entityId: string, resource: string): BucketKey {
    const family = this.#families.known(entityId);
    const known = family === undefined ? undefined : this.#known.get(family);
    const key = known?.get(resource);
    if (key !== undefined) return key;
    const made = bucketKey(
      { namespaceId: this.#namespaceId, entityId, resource, shard: 0 },
      family,
    );
    if (known === undefined) {
      if (family !== undefined) this.#known.set(family, new Map([[resource, made]]));
    } else if (known.size < MAX_KEYS) known.set(resource, made);
    return made;
  }
}
