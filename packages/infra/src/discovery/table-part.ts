import {
  DescribeContinuousBackupsCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  type TableDescription,
} from "@aws-sdk/client-dynamodb";
import { isTableAbsent } from "../aws/aws-errors.ts";
import type { AwsClients } from "../aws/clients.ts";
import { askPart, isUnknown, type Service } from "./parts.ts";
import type { Seen, TableState } from "./status-model.ts";

const DYNAMODB: Service = {
  name: "DynamoDB",
  prefix: "dynamodb",
  isMissing: isTableAbsent,
};

/** The table. */
export async function findTable(clients: AwsClients): Promise<Seen<TableState>> {
  const command = new DescribeTableCommand({ TableName: clients.stack });
  const [described, ttlAttribute, pointInTimeRecovery] = await Promise.all([
    askPart(clients, DYNAMODB, async (send) => {
      const { Table } = await send("DescribeTable", (options) =>
        clients.dynamoDb.send(command, options),
      );
      return Table && parseTable(Table);
    }),
    findTtl(clients),
    findRecovery(clients),
  ]);
  if (described === undefined || isUnknown(described)) return described;
  return { ...described, ttlAttribute, pointInTimeRecovery };
}

/** What `DescribeTable` returns. */
function parseTable(
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

async function findTtl(clients: AwsClients): Promise<TableState["ttlAttribute"]> {
  const command = new DescribeTimeToLiveCommand({ TableName: clients.stack });
  return askPart(clients, { ...DYNAMODB, name: "time to live" }, async (send) => {
    const { TimeToLiveDescription } = await send("DescribeTimeToLive", (options) =>
      clients.dynamoDb.send(command, options),
    );
    const { TimeToLiveStatus: status = "", AttributeName = "" } = TimeToLiveDescription ?? {};
    return status.startsWith("ENABL") ? { name: AttributeName } : undefined;
  });
}

async function findRecovery(clients: AwsClients): Promise<TableState["pointInTimeRecovery"]> {
  const command = new DescribeContinuousBackupsCommand({ TableName: clients.stack });
  return askPart(clients, { ...DYNAMODB, name: "point-in-time recovery" }, async (send) => {
    const { ContinuousBackupsDescription } = await send("DescribeContinuousBackups", (options) =>
      clients.dynamoDb.send(command, options),
    );
    const recovery = ContinuousBackupsDescription?.PointInTimeRecoveryDescription;
    if (recovery?.PointInTimeRecoveryStatus !== "ENABLED") return undefined;
    const { RecoveryPeriodInDays: days } = recovery;
    return days === undefined ? {} : { days };
  });
}
