import type { Command } from "commander";
import {
  ValidationError,
  type BucketState,
  type Repository,
  type ResourceBucket,
} from "zae-limiter";
import { tableText } from "../output/table.ts";
import { numberText, timeText } from "../output/text.ts";
import { shardsArgument } from "./support/arguments.ts";
import { collectPages, moreText, type ListOptions } from "./support/pages.ts";
import type { Session } from "./support/session.ts";
import { addNoun, addVerb, cursorOption, listLimitOption, type Verb } from "./support/verb.ts";

/** Adds the verbs of `bucket`: the stored balances. */
export function addBucketCommands(program: Command, session: Session): void {
  const bucket = addNoun(program, "bucket", "Shows, splits and merges the stored balances.");

  addVerb(bucket, {
    usage: "show <entity>",
    summary:
      "Shows the stored buckets of an entity: every resource, limit and shard, with its balance.",
    examples: ["bucket show key-1", "bucket show key-1 --resource gpt-4"],
  })
    .option("-r, --resource <resource>", "Only this resource.")
    .action(
      async (entityId: string, { resource }: { readonly resource?: string }, command: Command) =>
        session.inNamespace(command, "existing", async ({ repository, screen }) => {
          const buckets = await repository.getBuckets(
            entityId,
            resource === undefined ? {} : { resource },
          );
          const none = `${entityId} has no buckets yet; the first acquire creates one.\n`;
          screen.show(buckets, () =>
            buckets.length === 0 ? none : tableText(HEADERS, buckets.map(cells), screen.colours),
          );
        }),
    );

  addVerb(bucket, {
    usage: "list <resource>",
    summary:
      "Lists the stored buckets of a resource, by entity: each limit with what all shards hold " +
      "together.",
    examples: ["bucket list gpt-4", "bucket list gpt-4 --limit-name tpm"],
  })
    .option("--limit-name <limit>", "Only this limit, and only buckets that have it.")
    .addOption(listLimitOption())
    .addOption(cursorOption())
    .action(
      async (
        resource: string,
        { limitName, ...options }: ListOptions & { readonly limitName?: string },
        command: Command,
      ) =>
        session.inNamespace(command, "existing", async ({ repository, screen }) => {
          const named = limitName === undefined ? {} : { limitName };
          const page = await collectPages(options, (paging) =>
            repository.getResourceBuckets(resource, { ...paging, ...named }),
          );
          const withLimit = limitName === undefined ? "" : ` with the limit ${limitName}`;
          const none = `No entity has a bucket${withLimit} on ${resource} yet.\n`;
          screen.show(page, () =>
            page.items.length === 0
              ? none
              : tableText(TOTAL_HEADERS, page.items.flatMap(totalCells), screen.colours) +
                moreText(page),
          );
        }),
    );

  addShardVerb(bucket, session, {
    usage: "split <entity>",
    summary:
      "Splits a bucket into shards ahead of a load that one DynamoDB item cannot carry. " +
      "The tokens are divided among the shards. A bucket that is calm for five minutes is merged again.",
    examples: ["bucket split key-1 --resource gpt-4 --shards 8"],
    change: (repository) => repository.splitBucket?.bind(repository),
  });

  addShardVerb(bucket, session, {
    usage: "merge <entity>",
    summary:
      "Merges the shards of a bucket that needs them no longer, without waiting until it has been " +
      "calm for five minutes. The tokens of the shards are added up.",
    examples: ["bucket merge key-1 --resource gpt-4 --shards 1"],
    change: (repository) => repository.mergeBucket?.bind(repository),
  });
}

/** Adds a verb that changes how many shards a bucket has. */
function addShardVerb(
  bucket: Command,
  session: Session,
  {
    change,
    ...help
  }: Verb & { readonly change: (repository: Repository) => Repository["splitBucket"] },
): void {
  addVerb(bucket, help)
    .requiredOption("-r, --resource <resource>", "The resource of the bucket.")
    .requiredOption(
      "--shards <number>",
      "How many shards the bucket should have: a power of two, such as 8.",
      shardsArgument,
    )
    .action(async (entityId: string, { resource, shards }: ShardOptions, command: Command) =>
      session.inNamespace(command, "existing", async ({ repository, screen }) => {
        const changeShards = change(repository);
        if (changeShards === undefined) throw new ValidationError("shards", shards, NO_SHARDS);
        const count = await changeShards(entityId, resource, { shards });
        screen.show({ entityId, resource, shards: count }, () =>
          shardsText({ entityId, resource, count }),
        );
      }),
    );
}

interface ShardOptions {
  readonly resource: string;
  readonly shards: number;
}

const NO_SHARDS =
  "this repository has none. Only buckets in a DynamoDB table have shards; " +
  "embedded backends need none";

/**
 * Shows the actual count: a split keeps the shards that are there already, and a merge makes none.
 */
function shardsText({
  entityId,
  resource,
  count,
}: {
  readonly entityId: string;
  readonly resource: string;
  readonly count: number;
}): string {
  const shards = count === 1 ? "1 shard" : `${count} shards`;
  const show = `zae-limiter bucket show ${entityId} --resource ${resource}`;
  const them = count === 1 ? "it" : "them";
  return `The bucket of ${entityId} for ${resource} has ${shards}. To see ${them}: ${show}\n`;
}

const HEADERS = [
  "Resource",
  "Limit",
  "Shard",
  "Available",
  "Capacity",
  "Refill",
  "Consumed",
  "Last refill",
] as const;

const TOTAL_HEADERS = ["Entity", "Limit", "Shards", "Available", "Capacity", "Consumed"] as const;

function totalCells({
  entityId,
  shardCount,
  limits,
}: ResourceBucket): readonly (readonly (string | number)[])[] {
  return limits.map(({ limitName, available, capacityMilli, totalConsumedMilli }) => [
    entityId,
    limitName,
    shardCount,
    available,
    capacityMilli / 1000,
    totalConsumedMilli / 1000,
  ]);
}

function cells(state: BucketState): readonly (string | number)[] {
  const { resource, limitName, shard, shardCount, available, capacityMilli } = state;
  return [
    resource,
    limitName,
    `${shard + 1}/${shardCount}`,
    available,
    capacityMilli / 1000,
    refillText(state),
    state.totalConsumedMilli / 1000,
    timeText(new Date(state.lastRefillMs)),
  ];
}

/** How a limit fills: what it earns, or when its window ends. */
function refillText({ kind, refillAmountMilli, refillPeriodMs, windowEndMs }: BucketState): string {
  if (kind === "rate")
    return `${numberText(refillAmountMilli / 1000)} every ${numberText(refillPeriodMs / 1000)} s`;
  const ends =
    windowEndMs === undefined ? "no window open" : `until ${timeText(new Date(windowEndMs))}`;
  return `${kind}, ${ends}`;
}
