import { createRequire } from "node:module";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { App, CustomResource, Stack, aws_iam as iam, aws_sns as sns } from "aws-cdk-lib";
import { Match, Template } from "aws-cdk-lib/assertions";
import { expect, it, vi } from "vitest";
import { ZaeLimiter, type ZaeLimiterProps } from "@zae-limiter/infra/cdk";
import { loadPeer } from "../src/cdk/load-cdk.ts";

// CDK's own validation takes seconds for each app; cfn-lint judges the same template elsewhere.
vi.stubEnv("CDK_VALIDATION", "false");

function synthesize(
  props: (stack: Stack) => ZaeLimiterProps = () => ({}),
  use: (limiter: ZaeLimiter, stack: Stack) => void = () => undefined,
): Template {
  const stack = new Stack(new App({ analyticsReporting: false }), "Gateway");
  use(new ZaeLimiter(stack, "Limiter", props(stack)), stack);
  return Template.fromStack(stack);
}

it("creates the table, which outlives the app, and an aggregator with real code [W-73]", () => {
  const template = synthesize();
  template.hasResource("AWS::DynamoDB::Table", {
    Properties: { TableName: "Gateway", BillingMode: "PAY_PER_REQUEST" },
    DeletionPolicy: "RetainExceptOnCreate",
    UpdateReplacePolicy: "Retain",
  });
  template.hasResourceProperties("AWS::Lambda::Function", {
    FunctionName: "Gateway-aggregator",
    Code: { S3Bucket: Match.anyValue(), S3Key: Match.stringLikeRegexp("^[0-9a-f]{64}\\.zip$") },
    Environment: { Variables: { TABLE_NAME: { Ref: Match.stringLikeRegexp("RateLimitsTable") } } },
  });
  template.resourceCountIs("AWS::Lambda::EventSourceMapping", 1);
  expect(template.toJSON()).not.toHaveProperty("Conditions");
  expect(Object.keys(template.findParameters("*"))).toEqual(["BootstrapVersion"]);
});

it("takes the options of a stack, and a name for the table", () => {
  const template = synthesize(() => ({
    stackName: "limits",
    billingMode: "provisioned",
    enableAggregator: false,
    enableProvisioner: false,
    enableAlarms: false,
  }));
  template.hasResourceProperties("AWS::DynamoDB::Table", {
    TableName: "limits",
    ProvisionedThroughput: { ReadCapacityUnits: 5, WriteCapacityUnits: 5 },
  });
  template.resourceCountIs("AWS::ApplicationAutoScaling::ScalableTarget", 10);
  template.resourceCountIs("AWS::Lambda::Function", 0);
  template.resourceCountIs("AWS::CloudWatch::Alarm", 0);
});

it("creates a provisioner with real code, whose ARN is the token of declared limits [W-64]", () => {
  const template = synthesize(undefined, (limiter, stack) => {
    const limits = new CustomResource(stack, "Limits", {
      serviceToken: limiter.provisionerArn!,
      resourceType: "Custom::ZaeLimiterLimits",
      properties: { Namespace: "default", System: { Limits: { rpm: { Capacity: 100 } } } },
    });
    expect(limits.node.id).toBe("Limits");
  });
  template.hasResourceProperties("AWS::Lambda::Function", {
    FunctionName: "Gateway-limits-provisioner",
    Code: { S3Bucket: Match.anyValue(), S3Key: Match.stringLikeRegexp("^[0-9a-f]{64}\\.zip$") },
    Role: { "Fn::GetAtt": [Match.stringLikeRegexp("ProvisionerRole"), "Arn"] },
  });
  template.hasResourceProperties("Custom::ZaeLimiterLimits", {
    ServiceToken: { "Fn::GetAtt": [Match.stringLikeRegexp("ProvisionerFunction"), "Arn"] },
  });
  const keys = Object.values(template.findResources("AWS::Lambda::Function")).map(
    ({ Properties }) => (Properties as { Code: { S3Key: string } }).Code.S3Key,
  );
  expect(new Set(keys).size).toBe(2);
});

it.each([{ enableProvisioner: false }, { createIam: false }])("has none with %j", (props) => {
  synthesize(
    () => props,
    (limiter) => expect(limiter.provisionerArn).toBeUndefined(),
  ).resourceCountIs("AWS::Lambda::Function", props.createIam === false ? 0 : 1);
});

it("takes what is known only when the app is deployed", () => {
  const template = synthesize((stack) => ({
    alarmSnsTopic: new sns.Topic(stack, "Alarms").topicArn,
  }));
  template.allResourcesProperties("AWS::CloudWatch::Alarm", {
    AlarmActions: [{ Ref: Match.stringLikeRegexp("^Alarms") }],
  });
});

it("grants roles what the policies of a stack allow", () => {
  const grants = {
    acquirer: ["grantAcquire", "WriteBuckets"],
    manager: ["grantFullAccess", "Write"],
    reader: ["grantReadOnly", "Describe"],
  } as const;
  const template = synthesize(undefined, (limiter, stack) => {
    for (const [name, [grant]] of Object.entries(grants))
      limiter[grant](
        new iam.Role(stack, name, { assumedBy: new iam.AccountPrincipal("111122223333") }),
      );
    expect(stack.resolve(limiter.tableName)).toEqual({ Ref: expect.any(String) as string });
  });
  for (const [name, [, sid]] of Object.entries(grants))
    template.hasResourceProperties("AWS::IAM::Policy", {
      PolicyName: Match.stringLikeRegexp(`^${name}`),
      PolicyDocument: {
        Statement: Match.arrayWith([
          Match.objectLike({
            Sid: sid,
            Resource: { "Fn::GetAtt": [Match.stringLikeRegexp("RateLimitsTable"), "Arn"] },
          }),
        ]),
      },
    });
});

it.each([
  [{ stackName: "1limits" }, "Invalid stackName: must begin with a letter"],
  [{ tags: { team: "search" } }, "Invalid tags: are the app's: call Tags.of(stack).add"],
  [{ lambdaTimeoutSeconds: 901 }, "Invalid lambdaTimeoutSeconds: must be a whole number from 1 to"],
])("refuses %j with a sentence", (props: object, message) => {
  expect(() => synthesize(() => props)).toThrow(message);
});

it("says what to install where CDK is missing", () => {
  expect(() => loadPeer("aws-cdk-lib", notFound)).toThrow(
    "The construct of zae-limiter needs aws-cdk-lib: run npm install aws-cdk-lib constructs.",
  );
});

function notFound(): never {
  throw Object.assign(new Error("Cannot find module"), { code: "MODULE_NOT_FOUND" });
}

it("can be required by an app whose files are CommonJS", () => {
  const built = createRequire(import.meta.url)("@zae-limiter/infra/cdk") as object;
  expect(Object.keys(built)).toEqual(["ZaeLimiter"]);
});

it("works as the README shows it", async () => {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const [, example] = /```ts\n([^`]*ZaeLimiter[^`]*)```/.exec(readme)!;
  // Beside what was built, so that it finds the packages that a user would have.
  const file = new URL("../dist/readme-example.mjs", import.meta.url);
  writeFileSync(file, `${example}\nexport { stack };`);
  try {
    const { stack } = (await import(file.href)) as { readonly stack: Stack };
    Template.fromStack(stack).resourceCountIs("AWS::IAM::Policy", 1);
  } finally {
    rmSync(file);
  }
});
