/*
 * A usage snapshot: what an entity consumed of a resource in one window. Besides its keys, names
 * and `ttl` it has
 *
 *   u_{limit}            millitokens that were consumed, net of what was given back
 *   c_{limit}            how much of that came by cascade; absent where nothing did
 *   requests             granted acquires less those that were rolled back
 *   cascaded_requests    how many of these came by cascade; absent where none did
 *   seq_{shard}          the stream position of the last counted change of that bucket shard
 *
 * The prefixes keep limit names apart from each other and from other attributes.
 */

/** The attribute that counts granted acquires. */
export const REQUESTS_ATTRIBUTE = "requests";

/** The attribute that counts granted acquires of children. */
export const CASCADED_REQUESTS_ATTRIBUTE = "cascaded_requests";

/** How the attributes of consumption, in millitokens, begin. */
export const CONSUMED_PREFIX = "u_";

/** How the attributes of what came by cascade, in millitokens, begin. */
export const CASCADED_PREFIX = "c_";

/** The attribute that holds the position of the last counted change of one bucket shard. */
export function positionAttribute(shard: number): string {
  return `seq_${shard}`;
}
