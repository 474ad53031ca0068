import { tableDeclaration, TTL_ATTRIBUTE } from "zae-limiter/dynamodb";
import {
  getAtt,
  NO_VALUE,
  ref,
  sub,
  when,
  type Properties,
  type Resources,
  type Value,
} from "../cloudformation/template.ts";

/** The logical id of the table. */
export const TABLE = "RateLimitsTable";

/** The ARN of the table. */
export const TABLE_ARN: Value = getAtt(TABLE, "Arn");

/** The name of the table. */
export const TABLE_NAME: Value = ref(TABLE);

const DECLARATION = tableDeclaration({ stream: true });

/** The names of the table's indexes. */
export const INDEX_NAMES: readonly string[] = DECLARATION.GlobalSecondaryIndexes.map(
  ({ IndexName }) => IndexName,
);

/** The table as the library declares it, with what only a stack adds. */
export function tableResources(): Resources {
  const { KeySchema, AttributeDefinitions, GlobalSecondaryIndexes } = DECLARATION;
  return {
    [TABLE]: {
      Type: "AWS::DynamoDB::Table",
      // The data outlives its stack, except when its first deployment failed.
      DeletionPolicy: "RetainExceptOnCreate",
      UpdateReplacePolicy: "Retain",
      Properties: {
        TableName: sub("${AWS::StackName}"),
        BillingMode: ref("BillingMode"),
        ...throughput("ReadCapacity", "WriteCapacity"),
        KeySchema: plain(KeySchema),
        AttributeDefinitions: plain(AttributeDefinitions),
        GlobalSecondaryIndexes: GlobalSecondaryIndexes.map((index) =>
          Object.assign({}, index, throughput("IndexReadCapacity", "IndexWriteCapacity")),
        ),
        StreamSpecification: { StreamViewType: DECLARATION.StreamSpecification!.StreamViewType },
        TimeToLiveSpecification: { AttributeName: TTL_ATTRIBUTE, Enabled: true },
        PointInTimeRecoverySpecification: {
          PointInTimeRecoveryEnabled: true,
          RecoveryPeriodInDays: when("UsePITRRecoveryPeriod", ref("PITRRecoveryPeriodDays")),
        },
        DeletionProtectionEnabled: when("EnableTableDeletionProtection", true, false),
      },
    },
  };
}

function throughput(read: string, write: string): Properties {
  return {
    ProvisionedThroughput: when(
      "Provisioned",
      { ReadCapacityUnits: ref(read), WriteCapacityUnits: ref(write) },
      NO_VALUE,
    ),
  };
}

/** The declaration of the library consists of plain data, which a template may hold. */
function plain(declared: object): Value {
  return declared as Value;
}
