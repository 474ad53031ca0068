import {
  DescribeContinuousBackupsCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  type DynamoDBClient,
  type TableDescription,
} from "@aws-sdk/client-dynamodb";
import { seen, type Asked } from "./seen.ts";
import type { TableState } from "./status-model.ts";

/** Asks DynamoDB for the table; throws if there is none. */
export async function tableState(
  client: DynamoDBClient,
  TableName: string,
  asked: Asked,
): Promise<TableState | undefined> {
  const [{ Table }, ttlAttribute, pointInTimeRecovery] = await Promise.all([
    client.send(new DescribeTableCommand({ TableName })),
    seen({ ...asked, service: "time to live" }, () => ttlOf(client, TableName)),
    seen({ ...asked, service: "point-in-time recovery" }, () => recoveryOf(client, TableName)),
  ]);
  return Table && { ...describedTable(Table), ttlAttribute, pointInTimeRecovery };
}

/** What `DescribeTable` tells. */
function describedTable(
  table: TableDescription,
): Omit<TableState, "ttlAttribute" | "pointInTimeRecovery"> {
  const { TableStatus, ItemCount, TableSizeBytes, LatestStreamArn, StreamSpecification } = table;
  const hasStream = StreamSpecification?.StreamEnabled === true;
  return {
    status: TableStatus ?? "",
    ...(ItemCount !== undefined && { itemCount: ItemCount }),
    ...(TableSizeBytes !== undefined && { sizeBytes: TableSizeBytes }),
    billing:
      table.BillingModeSummary?.BillingMode === "PAY_PER_REQUEST" ? "on demand" : "provisioned",
    ...(hasStream && LatestStreamArn !== undefined && { streamArn: LatestStreamArn }),
    deletionProtection: table.DeletionProtectionEnabled ?? false,
    indexes: Object.fromEntries(
      (table.GlobalSecondaryIndexes ?? [])
        .map(({ IndexName = "", IndexStatus = "" }) => [IndexName, IndexStatus] as const)
        .toSorted(([left], [right]) => (left < right ? -1 : 1)),
    ),
  };
}

async function ttlOf(
  client: DynamoDBClient,
  TableName: string,
): Promise<{ readonly name: string } | undefined> {
  const { TimeToLiveDescription } = await client.send(new DescribeTimeToLiveCommand({ TableName }));
  const { TimeToLiveStatus: status = "", AttributeName = "" } = TimeToLiveDescription ?? {};
  return status.startsWith("ENABL") ? { name: AttributeName } : undefined;
}

async function recoveryOf(
  client: DynamoDBClient,
  TableName: string,
): Promise<{ readonly days?: number } | undefined> {
  const { ContinuousBackupsDescription } = await client.send(
    new DescribeContinuousBackupsCommand({ TableName }),
  );
  const recovery = ContinuousBackupsDescription?.PointInTimeRecoveryDescription;
  if (recovery?.PointInTimeRecoveryStatus !== "ENABLED") return undefined;
  const { RecoveryPeriodInDays: days } = recovery;
  return days === undefined ? {} : { days };
}
