import { InfrastructureError, InfrastructureNotFoundError } from "../../../core/errors.ts";
import type { Connection } from "./connection.ts";

/** What an index copies from each item. */
type Projection = "ALL" | "KEYS_ONLY";

/** A global secondary index as `CreateTable` declares it. */
export interface IndexDeclaration {
  /** Its name. */
  readonly IndexName: string;
  /** Its partition key and its sort key. */
  readonly KeySchema: readonly {
    /** The attribute. */
    readonly AttributeName: string;
    /** HASH is the partition key, RANGE the sort key. */
    readonly KeyType: "HASH" | "RANGE";
  }[];
  /** What it copies. */
  readonly Projection: {
    /** All attributes, or keys only. */
    readonly ProjectionType: Projection;
  };
}

/** Names of the indexes; `keys.ts` shows what is in them. */
export type IndexName = "GSI1" | "GSI2" | "GSI3" | "GSI4";

/**
 * Buckets change with every call, so no index that they are in copies more than keys: KEYS_ONLY
 * costs a bucket's write nothing, ALL one more write unit each. Only entities, which rarely change,
 * are in GSI1.
 */
const INDEXES: Readonly<Record<IndexName, Projection>> = {
  GSI1: "ALL",
  GSI2: "KEYS_ONLY",
  GSI3: "KEYS_ONLY",
  GSI4: "KEYS_ONLY",
};

/** The attribute by which DynamoDB expires an item, in seconds since 1970. */
export const TTL_ATTRIBUTE = "ttl";

/**
 * The table as `CreateTable` and the CloudFormation template both declare it. Neither has local
 * indexes: nothing would be in them.
 */
export interface TableDeclaration {
  /** Paid by request. */
  readonly BillingMode: "PAY_PER_REQUEST";
  /** The partition key and the sort key. */
  readonly KeySchema: IndexDeclaration["KeySchema"];
  /** The attributes that are keys, of the table or of an index. */
  readonly AttributeDefinitions: readonly {
    /** The attribute. */
    readonly AttributeName: string;
    /** All keys are texts. */
    readonly AttributeType: "S";
  }[];
  /** The indexes. */
  readonly GlobalSecondaryIndexes: readonly IndexDeclaration[];
  /** The stream, if there is one. */
  readonly StreamSpecification?: {
    /** It is on. */
    readonly StreamEnabled: true;
    /** The aggregator compares both images. */
    readonly StreamViewType: "NEW_AND_OLD_IMAGES";
  };
}

/**
 * Declares the table. The stream feeds the aggregator; a table without one costs less and is faster
 * on local engines.
 *
 * @example const { KeySchema, GlobalSecondaryIndexes } = tableDeclaration({ stream: true });
 */
export function tableDeclaration({
  stream,
}: {
  /** Whether it has a stream. */
  readonly stream: boolean;
}): TableDeclaration {
  const indexNames = Object.keys(INDEXES) as readonly IndexName[];
  const attributes = ["PK", "SK", ...indexNames.flatMap((name) => [`${name}PK`, `${name}SK`])];
  return {
    BillingMode: "PAY_PER_REQUEST",
    KeySchema: keySchema("PK", "SK"),
    AttributeDefinitions: attributes.map((AttributeName) => ({
      AttributeName,
      AttributeType: "S",
    })),
    GlobalSecondaryIndexes: indexNames.map((IndexName) => ({
      IndexName,
      KeySchema: keySchema(`${IndexName}PK`, `${IndexName}SK`),
      Projection: { ProjectionType: INDEXES[IndexName] },
    })),
    ...(stream && {
      StreamSpecification: { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" },
    }),
  };
}

function keySchema(hash: string, range: string): IndexDeclaration["KeySchema"] {
  return [
    { AttributeName: hash, KeyType: "HASH" },
    { AttributeName: range, KeyType: "RANGE" },
  ];
}

/** The time between two checks of a table that is being created; AWS takes about ten seconds. */
const POLL_MS = 500;
/** Two minutes: far more than AWS ever takes for an empty table. */
const MAX_POLLS = 240;

/**
 * Creates the table unless it exists, waits until it can be used, and lets its items expire.
 * Returns whether it was missing.
 */
export async function createTable(
  connection: Connection,
  options: { readonly stream: boolean; readonly signal?: AbortSignal },
): Promise<boolean> {
  const { signal } = options;
  const isMissing = !(await tableExists(connection, { signal }));
  if (isMissing) await createUnlessExists(connection, options);
  await untilStatus(connection, "ACTIVE", { signal });
  await enableTtl(connection, { signal });
  return isMissing;
}

/** Deletes the table with everything in it, and waits until it is gone; it need not exist. */
export async function deleteTable(
  connection: Connection,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<void> {
  try {
    await connection.repeat("DeleteTable", {}, { signal });
  } catch (error) {
    if (!(error instanceof InfrastructureNotFoundError) && !isInUse(error)) throw error;
  }
  await untilStatus(connection, undefined, { signal });
}

/** Whether the table is there, ready or not. */
export async function tableExists(
  connection: Connection,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<boolean> {
  return (await tableStatus(connection, options)) !== undefined;
}

interface Signalled {
  readonly signal?: AbortSignal | undefined;
}

async function createUnlessExists(
  connection: Connection,
  { stream, signal }: { readonly stream: boolean } & Signalled,
): Promise<void> {
  try {
    await connection.repeat("CreateTable", tableDeclaration({ stream }), { signal });
  } catch (error) {
    // Another process was faster, or our own first attempt did arrive.
    if (!isInUse(error)) throw error;
  }
}

async function tableStatus(
  connection: Connection,
  { signal }: Signalled,
): Promise<string | undefined> {
  try {
    const { Table } = await connection.repeat<{ Table?: { TableStatus?: string } }>(
      "DescribeTable",
      {},
      { signal },
    );
    return Table?.TableStatus ?? "ACTIVE";
  } catch (error) {
    if (error instanceof InfrastructureNotFoundError) return undefined;
    throw error;
  }
}

async function untilStatus(
  connection: Connection,
  wanted: "ACTIVE" | undefined,
  { signal }: Signalled,
): Promise<void> {
  for (let polls = 0; polls < MAX_POLLS; polls += 1) {
    if ((await tableStatus(connection, { signal })) === wanted) return;
    await connection.clock.sleep(POLL_MS, signal);
  }
  const state = wanted === undefined ? "deleted" : "ready";
  throw new InfrastructureNotFoundError(
    `Table ${connection.tableName} was not ${state} after ${(MAX_POLLS * POLL_MS) / 1000} seconds.`,
  );
}

async function enableTtl(connection: Connection, { signal }: Signalled): Promise<void> {
  const described = await connection.repeat<{
    TimeToLiveDescription?: { TimeToLiveStatus?: string };
  }>("DescribeTimeToLive", {}, { signal });
  const status = described.TimeToLiveDescription?.TimeToLiveStatus;
  if (status === "ENABLED" || status === "ENABLING") return;
  try {
    await connection.repeat(
      "UpdateTimeToLive",
      { TimeToLiveSpecification: { AttributeName: TTL_ATTRIBUTE, Enabled: true } },
      { signal },
    );
  } catch (error) {
    // Another process enabled it between our check and our update; DynamoDB calls that invalid.
    if (
      !(error instanceof InfrastructureError && getErrorName(error.cause) === "ValidationException")
    )
      throw error;
  }
}

function isInUse(error: unknown): boolean {
  return (
    error instanceof InfrastructureError && getErrorName(error.cause) === "ResourceInUseException"
  );
}

function getErrorName(error: unknown): string | undefined {
  return error instanceof Error ? error.name : undefined;
}
