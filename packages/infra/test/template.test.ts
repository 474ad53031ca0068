import { stackTemplate, templateYaml } from "@zae-limiter/infra";
import { describe, expect, it } from "vitest";
import { STREAM_FILTERS } from "zae-limiter/aggregator";
import { metricsLine } from "../../lambda/aggregator/metrics.ts";
import { QUIET } from "../../lambda/test/support/quiet-report.ts";
import { Resolver, resolveTemplate } from "../src/options/resolve-template.ts";
import { defaultParameters } from "../src/options/parameters.ts";
import type { Properties, Value } from "../src/cloudformation/template.ts";
import { jsonOfTemplate } from "./support/scripted-aws/cloudformation/template-model.ts";

const TEMPLATE = stackTemplate();
const CODE = {
  CodeBucket: "code",
  AggregatorCodeKey: "aggregator.zip",
  ProvisionerCodeKey: "provisioner.zip",
};

/** The properties of a resource, as they are with some parameters. */
function readProperties(
  id: string,
  parameters: Readonly<Record<string, string>> = CODE,
): Properties {
  const { Resources } = resolveTemplate(parameters);
  expect(Object.keys(Resources)).toContain(id);
  return Resources[id]!.Properties;
}

describe("as text", () => {
  it("is short enough to be sent", () => {
    // A deployment writes the name of the table into it, which may have 128 characters.
    expect(Buffer.byteLength(templateYaml()) + 128).toBeLessThanOrEqual(51_200);
  });

  it("is the same template, and always the same text", () => {
    expect(JSON.parse(jsonOfTemplate(templateYaml()))).toEqual(TEMPLATE);
    expect(templateYaml()).toBe(templateYaml());
  });

  it("has no aliases, which CloudFormation does not read", () => {
    expect(templateYaml()).not.toMatch(/[&*][a-z]\d+\b/);
  });
});

describe("names", () => {
  it("has every parameter of the Python zae-limiter", () => {
    const parameters = sort(`
      SnapshotWindows SnapshotRetentionDays LambdaMemorySize LambdaTimeout EnableAggregator SchemaVersion
      PITRRecoveryPeriodDays EnableAlarms AlarmSNSTopicArn LogRetentionDays LambdaDurationThreshold
      PermissionBoundary AggregatorRoleName AppRoleName AdminRoleName ReadOnlyRoleName ProvisionerRoleName
      RoleNameFormat AcquireOnlyPolicyName FullAccessPolicyName ReadOnlyPolicyName NamespaceAcquirePolicyName
      NamespaceFullAccessPolicyName NamespaceReadOnlyPolicyName EnableAuditArchival
      AuditArchiveGlacierTransitionDays EnableTracing EnableIAMRoles EnableIAM AggregatorRoleArn
      EnableProvisioner EnableDeletionProtection`);
    expect(Object.keys(TEMPLATE.Parameters)).toEqual(expect.arrayContaining([...parameters]));
  });

  it("has its exports", () => {
    const exports = Object.values(TEMPLATE.Outputs).flatMap(({ Export }) =>
      Export === undefined ? [] : (Export.Name as { "Fn::Sub": string })["Fn::Sub"],
    );
    expect(exports.map((name) => name.replace("${AWS::StackName}-", "")).toSorted()).toEqual(
      sort(`
      TableName TableArn StreamArn AggregatorArn AggregatorName DLQUrl DLQArn DLQAlarmName
      LambdaErrorRateAlarmName LambdaDurationAlarmName ReadThrottleAlarmName WriteThrottleAlarmName
      StreamIteratorAgeAlarmName AuditArchiveBucketName AuditArchiveBucketArn AcquireOnlyPolicyArn
      FullAccessPolicyArn ReadOnlyPolicyArn NamespaceAcquirePolicyArn NamespaceFullAccessPolicyArn
      NamespaceReadOnlyPolicyArn AppRoleArn AppRoleName AdminRoleArn AdminRoleName ReadOnlyRoleArn
      ReadOnlyRoleName PermissionBoundaryArn RoleNameFormat CodeBucketName
      ProvisionerArn ProvisionerName`),
    );
  });

  it("has its resources", () => {
    const ids = sort(`
      RateLimitsTable AuditArchiveBucket AcquireOnlyPolicy FullAccessPolicy ReadOnlyPolicy
      NamespaceAcquirePolicy NamespaceFullAccessPolicy NamespaceReadOnlyPolicy AggregatorDLQ AggregatorDLQAlarm
      AggregatorLogGroup AggregatorRole AppRole AdminRole ReadOnlyRole AggregatorFunction
      AggregatorEventSourceMapping LambdaErrorRateAlarm LambdaDurationAlarm DynamoDBReadThrottleAlarm
      DynamoDBWriteThrottleAlarm StreamIteratorAgeAlarm ProvisionerLogGroup ProvisionerRole ProvisionerFunction`);
    expect(Object.keys(TEMPLATE.Resources)).toEqual(expect.arrayContaining([...ids]));
  });
});

describe("the table", () => {
  it("has no index that copies what calls write [W-17]", () => {
    const indexes = readProperties("RateLimitsTable")["GlobalSecondaryIndexes"];
    expect(indexes).toMatchObject([
      { IndexName: "GSI1", Projection: { ProjectionType: "ALL" } },
      { IndexName: "GSI2", Projection: { ProjectionType: "KEYS_ONLY" } },
      { IndexName: "GSI3", Projection: { ProjectionType: "KEYS_ONLY" } },
      { IndexName: "GSI4", Projection: { ProjectionType: "KEYS_ONLY" } },
    ]);
  });

  it("has no local indexes, which would limit a partition to 10 GB [W-70]", () => {
    expect(readProperties("RateLimitsTable")).not.toHaveProperty("LocalSecondaryIndexes");
  });

  it("outlives its stack, and so does the archive", () => {
    for (const id of ["RateLimitsTable", "AuditArchiveBucket"])
      expect(TEMPLATE.Resources[id]).toMatchObject({
        DeletionPolicy: "RetainExceptOnCreate",
        UpdateReplacePolicy: "Retain",
      });
  });

  it("expires items, keeps both images in its stream, and can be restored", () => {
    expect(readProperties("RateLimitsTable")).toMatchObject({
      BillingMode: "PAY_PER_REQUEST",
      StreamSpecification: { StreamViewType: "NEW_AND_OLD_IMAGES" },
      TimeToLiveSpecification: { AttributeName: "ttl", Enabled: true },
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
    });
  });

  it("is scaled with each of its indexes where capacity is provisioned", () => {
    const provisioned = { BillingMode: "PROVISIONED", WriteCapacity: "7", IndexWriteCapacity: "3" };
    const { Resources } = resolveTemplate(provisioned);
    const targets = Object.values(Resources)
      .filter(({ Type }) => Type === "AWS::ApplicationAutoScaling::ScalableTarget")
      .map(({ Properties }) => Properties);
    const places = ["", "/index/GSI1", "/index/GSI2", "/index/GSI3", "/index/GSI4"];
    for (const place of places)
      for (const direction of ["Read", "Write"])
        expect(targets).toContainEqual(
          expect.objectContaining({
            ResourceId: { "Fn::Sub": `table/\${RateLimitsTable}${place}` },
            ScalableDimension: `dynamodb:${place ? "index" : "table"}:${direction}CapacityUnits`,
            MaxCapacity: 100,
          }),
        );
    const policies = Object.values(Resources).filter(({ Type }) => Type.endsWith("ScalingPolicy"));
    expect([targets.length, policies.length]).toEqual([10, 10]);
    expect(Resources["RateLimitsTable"]!.Properties).toMatchObject({
      ProvisionedThroughput: { ReadCapacityUnits: 5, WriteCapacityUnits: 7 },
      GlobalSecondaryIndexes: [{ ProvisionedThroughput: { WriteCapacityUnits: 3 } }, {}, {}, {}],
    });
  });
});

describe("the aggregator", () => {
  it("loses no record: it begins with the oldest, with real code, and never gives up [W-73]", () => {
    expect(readProperties("AggregatorEventSourceMapping")).toMatchObject({
      StartingPosition: "TRIM_HORIZON",
      FunctionResponseTypes: ["ReportBatchItemFailures"],
      MaximumRetryAttempts: -1,
      MaximumRecordAgeInSeconds: -1,
      BisectBatchOnFunctionError: true,
      BatchSize: 1000,
    });
    expect(readProperties("AggregatorFunction")).toMatchObject({
      Runtime: "nodejs22.x",
      Architectures: ["arm64"],
      Handler: "index.handler",
      Code: { S3Bucket: "code", S3Key: "aggregator.zip" },
    });
  });

  it.each([
    ["without code", { ...CODE, AggregatorCodeKey: "" }],
    ["without a bucket", { ...CODE, CodeBucket: "" }],
    ["that is switched off", { ...CODE, EnableAggregator: "false" }],
    ["without a role", { ...CODE, EnableIAM: "false" }],
  ])("is left out whole %s", (_, parameters: Readonly<Record<string, string>>) => {
    const { Resources } = resolveTemplate(parameters);
    const ids = Object.keys(Resources).filter((id) => /Aggregator|Lambda|Archive|Stream/.test(id));
    expect(ids).toEqual([]);
  });

  it("takes an existing role, and creates none then", () => {
    const role = "arn:aws:iam::111122223333:role/aggregator";
    const parameters = { ...CODE, EnableIAM: "false", AggregatorRoleArn: role };
    const { Resources } = resolveTemplate(parameters);
    expect(Resources["AggregatorFunction"]!.Properties["Role"]).toBe(role);
    expect(Object.values(Resources).filter(({ Type }) => Type.includes("IAM"))).toEqual([]);
  });

  it("has what its options say in its environment", () => {
    const parameters = { ...CODE, BucketTtlMultiplier: "0", SnapshotRetentionDays: "30" };
    const { Environment } = readProperties("AggregatorFunction", parameters);
    expect(Environment).toEqual({
      Variables: {
        TABLE_NAME: { Ref: "RateLimitsTable" },
        SNAPSHOT_WINDOWS: "hourly,daily,monthly",
        SNAPSHOT_TTL_DAYS: "30",
        BUCKET_TTL_MULTIPLIER: "0",
        ENABLE_ARCHIVAL: "true",
        ARCHIVE_BUCKET_NAME: { Ref: "AuditArchiveBucket" },
      },
    });
  });

  it("gets the records that it needs, by the filter of the library [W-26]", () => {
    expect(readProperties("AggregatorEventSourceMapping")["FilterCriteria"]).toEqual({
      Filters: STREAM_FILTERS.map((Pattern) => ({ Pattern })),
    });
  });

  it("leaves in a queue what it cannot process: pulses, and records that expired", () => {
    const queue = { "Fn::GetAtt": ["AggregatorDLQ", "Arn"] };
    expect(readProperties("AggregatorFunction")["DeadLetterConfig"]).toEqual({ TargetArn: queue });
    expect(readProperties("AggregatorEventSourceMapping")["DestinationConfig"]).toEqual({
      OnFailure: { Destination: queue },
    });
    expect(JSON.stringify(readProperties("AggregatorRole"))).toContain("sqs:SendMessage");
  });

  it("may do nothing on other resources, except for actions that cannot be limited", () => {
    const { Policies } = readProperties("AggregatorRole", { ...CODE, EnableTracing: "true" });
    const statements = (Policies as readonly { PolicyDocument: { Statement: Properties[] } }[])
      .flatMap(({ PolicyDocument }) => PolicyDocument.Statement)
      .filter(({ Resource }) => Resource === "*");
    expect(statements.flatMap(({ Action }) => Action)).toEqual([
      "dynamodb:ListStreams",
      "xray:PutTraceSegments",
      "xray:PutTelemetryRecords",
    ]);
  });
});

describe("alarms [W-69]", () => {
  const TOPIC = "arn:aws:sns:eu-west-1:111122223333:alarms";
  const { Resources } = resolveTemplate({ ...CODE, AlarmSNSTopicArn: TOPIC });
  const alarms = Object.entries(Resources).filter(([, { Type }]) => Type.endsWith("Alarm"));

  it("each has a reason and, where a topic is given, an action, the queue's included", () => {
    expect(alarms.length).toBe(11);
    for (const [, { Properties }] of alarms) {
      expect(Properties["AlarmDescription"]).toMatch(/^.{40,}\.$/);
      expect(Properties["AlarmActions"]).toEqual([TOPIC]);
    }
    for (const [, { Properties }] of Object.entries(resolveTemplate(CODE).Resources))
      expect(Properties).not.toHaveProperty("AlarmActions");
  });

  it("the error rate is a rate", () => {
    expect(listMetrics("LambdaErrorRateAlarm")).toEqual(["Errors", "Invocations"]);
    expect(getExpression("LambdaErrorRateAlarm")).toBe("100 * errors / MAX([errors, invocations])");
  });

  it("throttles of the table and of every index are seen", () => {
    for (const direction of ["Read", "Write"]) {
      expect(readProperties(`DynamoDB${direction}ThrottleAlarm`)).toMatchObject({
        MetricName: `${direction}ThrottleEvents`,
        Dimensions: [{ Name: "TableName" }],
      });
      const id = `Index${direction}ThrottleAlarm`;
      expect(listMetrics(id)).toEqual(Array(4).fill(`${direction}ThrottleEvents`));
      const text = JSON.stringify(readProperties(id)["Metrics"]);
      for (const index of ["GSI1", "GSI2", "GSI3", "GSI4"]) {
        expect(text).toContain(`{"Name":"GlobalSecondaryIndexName","Value":"${index}"}`);
        expect(getExpression(id)).toContain(`FILL(${index.toLowerCase()}, 0)`);
      }
    }
  });

  it("the growth of shards is splits less merges", () => {
    expect(listMetrics("SplitGrowthAlarm")).toEqual(["Splits", "Merges"]);
    expect(getExpression("SplitGrowthAlarm")).toBe("FILL(splits, 0) - FILL(merges, 0)");
  });

  it("the aggregator's own metrics are those that it prints", () => {
    const printed = JSON.parse(metricsLine(QUIET, "limits", 0)) as Printed;
    const [{ Namespace, Dimensions, Metrics }] = printed["_aws"].CloudWatchMetrics;
    const names = Metrics.map(({ Name }) => Name);
    expect(Dimensions).toEqual([["TableName"]]);
    const own = alarms.filter(([, { Properties }]) => JSON.stringify(Properties).includes("ZaeL"));
    expect(own.map(([id]) => id)).toEqual([
      "AggregatorFailuresAlarm",
      "AggregatorLagAlarm",
      "SplitGrowthAlarm",
    ]);
    for (const [id, { Properties }] of own) {
      expect(JSON.stringify(Properties)).toContain(`"Namespace":"${Namespace}"`);
      for (const name of listMetrics(id)) expect(names).toContain(name);
    }
  });

  type Metric = {
    readonly Expression?: string;
    readonly MetricStat?: { readonly Metric: Properties };
  };

  function listMetrics(id: string): readonly Value[] {
    const { MetricName, Metrics = [] } = readProperties(id) as { Metrics?: Metric[] } & Properties;
    const inExpression = Metrics.flatMap(
      ({ MetricStat }) => MetricStat?.Metric["MetricName"] ?? [],
    );
    return MetricName === undefined ? inExpression : [MetricName];
  }

  function getExpression(id: string): string | undefined {
    return (readProperties(id)["Metrics"] as readonly Metric[])[0]!.Expression;
  }
});

describe("rules", () => {
  it.each([
    [{ EnableIAMRoles: "true", EnableIAM: "false" }, "RolesNeedIAM"],
    [{ AggregatorCodeKey: "aggregator.zip" }, "CodeNeedsBucket"],
    [{ ProvisionerCodeKey: "provisioner.zip" }, "CodeNeedsBucket"],
  ])("refuse %j before anything is created", (parameters, broken) => {
    const resolver = new Resolver(TEMPLATE, { ...defaultParameters(), ...parameters });
    const failed = Object.entries(TEMPLATE.Rules).filter(([, { Assertions }]) =>
      Assertions.some(({ Assert }) => !resolver.holds(Assert)),
    );
    expect(failed.map(([name]) => name)).toEqual([broken]);
  });
});

function sort(names: string): readonly string[] {
  return names.split(/\s+/).filter(Boolean).toSorted();
}

interface Printed {
  readonly ["_aws"]: {
    readonly CloudWatchMetrics: readonly [
      {
        readonly Namespace: string;
        readonly Dimensions: readonly (readonly string[])[];
        readonly Metrics: readonly { readonly Name: string }[];
      },
    ];
  };
}
