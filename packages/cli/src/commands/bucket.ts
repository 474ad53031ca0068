import type { Command } from "commander";
import type { BucketState } from "zae-limiter";
import { tableText } from "../output/table.ts";
import { numberText, timeText } from "../output/text.ts";
import type { Runner } from "../runner.ts";
import { addNoun, addVerb } from "../verb.ts";

/** Buckets: the stored balances. */
export function addBucketCommands(program: Command, runner: Runner): void {
  const bucket = addNoun(program, "bucket", "the stored balances");

  addVerb(bucket, {
    usage: "show <entity>",
    summary: "Shows the stored buckets of an entity: every resource, limit and shard, with the balance now.",
    examples: ["bucket show key-1", "bucket show key-1 --resource gpt-4"],
  })
    .option("-r, --resource <resource>", "only this resource")
    .action(async (entityId: string, { resource }: { readonly resource?: string }, command: Command) =>
      runner.inNamespace(command, "existing", async ({ repository, screen }) => {
        const buckets = await repository.getBuckets(entityId, resource === undefined ? {} : { resource });
        const none = `${entityId} has no buckets yet: a bucket begins with the first call.\n`;
        screen.show(buckets, () => (buckets.length === 0 ? none : tableText(HEADERS, buckets.map(cells), screen.colours)));
      }),
    );
}

const HEADERS = ["Resource", "Limit", "Shard", "Available", "Capacity", "Refill", "Consumed", "Last refill"] as const;

function cells(state: BucketState): readonly (string | number)[] {
  const { resource, limitName, shard, shardCount, available, capacityMilli, refillAmountMilli, refillPeriodMs } = state;
  return [
    resource,
    limitName,
    `${shard + 1}/${shardCount}`,
    available,
    capacityMilli / 1000,
    `${numberText(refillAmountMilli / 1000)} every ${numberText(refillPeriodMs / 1000)} s`,
    state.totalConsumedMilli / 1000,
    timeText(new Date(state.lastRefillMs)),
  ];
}
