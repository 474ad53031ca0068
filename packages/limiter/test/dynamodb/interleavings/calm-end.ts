/*
 * How an interleaving ends where buckets are merged: the network works again, some calls go on, and
 * processes merge beside them. Then nothing may keep a lone process from making one whole bucket of
 * every one.
 */
import { bucketKey } from "../../../src/repository/dynamodb/items/bucket-key.ts";
import { NAMESPACE_ID } from "../../support/bucket-process.ts";
import { RESOURCE } from "./client.ts";
import { directly } from "./remaining-tokens.ts";
import { play } from "./schedule.ts";
import type { World } from "./world.ts";

/** Some calls, some merges, and no trouble. */
const CALM = {
  operations: 8,
  merges: 4,
  splits: 0,
  crashes: 0,
  configChanges: 0,
  clockSteps: 0,
  faultRate: 0,
  lateMerges: 0,
};

/** Calm load and merging end in one whole bucket. */
export async function mergeInTheEnd(world: World): Promise<void> {
  world.tell("the network is calm from here on");
  await play(world, CALM);
  await expectNoOrphans(world);
  for (const entityId of world.table.entityIds) {
    const { process } = world.startClient(0, directly(world));
    const count = await process.buckets.merge(entityId, RESOURCE, 1);
    const bucket = world.table.history(entityId).now;
    if (count !== 1 || bucket.size !== 1 || bucket.get(0)?.divisor !== 1)
      throw new Error(`${entityId} was merged into ${bucket.size} shards, and says ${count}`);
    world.coverage.count("bucket merged in the end");
  }
}

/** A process that knows nothing finds exactly the shards that there are. */
export async function expectNoOrphans(world: World): Promise<void> {
  for (const entityId of world.table.entityIds) {
    const { process } = world.startClient(0, directly(world));
    const key = bucketKey(
      { namespaceId: NAMESPACE_ID, entityId, resource: RESOURCE, shard: 0 },
      undefined,
    );
    const { shards, isWhole } = await process.known.readAll(key);
    const found = shards.map(({ image }) => image.shard);
    const there = [...world.table.history(entityId).now.keys()];
    if (!isWhole || found.length !== there.length || there.some((shard) => !found.includes(shard)))
      throw new Error(
        `${entityId} has the shards ${there.join()}, but a reader finds ${found.join()}`,
      );
  }
}
