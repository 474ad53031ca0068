// The scripted AWS itself, through the SDK's clients: other tests rely on it.
import {
  CloudFormationClient,
  CreateChangeSetCommand,
  DeleteStackCommand,
  DescribeChangeSetCommand,
  DescribeStackEventsCommand,
  DescribeStacksCommand,
  ExecuteChangeSetCommand,
  type Parameter,
} from "@aws-sdk/client-cloudformation";
import { DescribeTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { GetFunctionCommand, LambdaClient } from "@aws-sdk/client-lambda";
import { HeadBucketCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { GetCallerIdentityCommand, STSClient } from "@aws-sdk/client-sts";
import { expect, it } from "vitest";
import { freshTableName } from "../../limiter/test/support/engine.ts";
import { describeWithAws } from "./support/describe-with-aws.ts";

const TEMPLATE = {
  Parameters: { Days: { Type: "Number", Default: 30 } },
  Resources: {
    Table: {
      Type: "AWS::DynamoDB::Table",
      DeletionPolicy: "RetainExceptOnCreate",
      Properties: {
        TableName: { Ref: "AWS::StackName" },
        BillingMode: "PAY_PER_REQUEST",
        KeySchema: [{ AttributeName: "PK", KeyType: "HASH" }],
        AttributeDefinitions: [{ AttributeName: "PK", AttributeType: "S" }],
      },
    },
    Log: {
      Type: "AWS::Logs::LogGroup",
      Properties: {
        LogGroupName: { "Fn::Sub": "/aws/${Table}" },
        RetentionInDays: { Ref: "Days" },
      },
    },
  },
  Outputs: { TableArn: { Value: { "Fn::GetAtt": ["Table", "Arn"] } } },
};

describeWithAws("the scripted AWS", (aws) => {
  const settings = () => ({
    endpoint: aws().endpointUrl,
    region: "eu-west-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
    maxAttempts: 1,
  });

  async function executed(
    client: CloudFormationClient,
    StackName: string,
    options: {
      readonly type: "CREATE" | "UPDATE";
      readonly template?: object;
      readonly parameters?: readonly Parameter[];
      readonly importExisting?: boolean;
    },
  ): Promise<readonly string[]> {
    const name = `changes-${aws().seen.length}`;
    await client.send(
      new CreateChangeSetCommand({
        StackName,
        ChangeSetName: name,
        ChangeSetType: options.type,
        TemplateBody: JSON.stringify(options.template ?? TEMPLATE),
        Parameters: [...(options.parameters ?? [])],
        ...(options.importExisting === true && { ImportExistingResources: true }),
      }),
    );
    const names = { StackName, ChangeSetName: name };
    let changeSet;
    do changeSet = await client.send(new DescribeChangeSetCommand(names));
    while (changeSet.Status?.endsWith("IN_PROGRESS"));
    if (changeSet.Status === "FAILED") return [changeSet.StatusReason!];
    await client.send(new ExecuteChangeSetCommand(names));
    await aws().cloudFormation.advance(StackName);
    return changeSet.Changes!.map(
      ({ ResourceChange: { Action, LogicalResourceId, Replacement } = {} }) =>
        `${Action} ${LogicalResourceId} ${Replacement ?? ""}`.trim(),
    );
  }

  it("creates, updates, replaces and deletes, on the engine too", async () => {
    const client = new CloudFormationClient(settings());
    const database = new DynamoDBClient(settings());
    const stack = freshTableName();
    expect(await executed(client, stack, { type: "CREATE" })).toEqual(["Add Table", "Add Log"]);
    const { Stacks } = await client.send(new DescribeStacksCommand({ StackName: stack }));
    expect(Stacks![0]).toMatchObject({
      StackStatus: "CREATE_COMPLETE",
      Outputs: [{ OutputKey: "TableArn", OutputValue: expect.stringContaining(`table/${stack}`) }],
    });
    const { Table } = await database.send(new DescribeTableCommand({ TableName: stack }));
    expect(Table?.TableName).toBe(stack);

    expect(await executed(client, stack, { type: "UPDATE" })).toEqual([
      expect.stringContaining("didn't contain changes"),
    ]);
    const parameters = [{ ParameterKey: "Days", ParameterValue: "7" }];
    expect(await executed(client, stack, { type: "UPDATE", parameters })).toEqual([
      "Modify Log False",
    ]);
    const { Table: table, Log } = TEMPLATE.Resources;
    const renamed = {
      ...TEMPLATE,
      Resources: {
        Table: table,
        Log: { ...Log, Properties: { ...Log.Properties, LogGroupName: "/other" } },
      },
    };
    const previous = [{ ParameterKey: "Days", UsePreviousValue: true }];
    expect(
      await executed(client, stack, { type: "UPDATE", template: renamed, parameters: previous }),
    ).toEqual(["Modify Log True"]);

    await client.send(new DeleteStackCommand({ StackName: stack }));
    await aws().cloudFormation.advance(stack);
    await expect(
      client.send(new DescribeStacksCommand({ StackName: stack })),
    ).rejects.toMatchObject({ message: `Stack with id ${stack} does not exist` });
    // It was retained, so a new stack can only import it, by a name that is written out.
    await database.send(new DescribeTableCommand({ TableName: stack }));
    const named = {
      Resources: {
        Table: { ...table, Properties: { ...table.Properties, TableName: stack } },
      },
    };
    expect(
      await executed(client, stack, { type: "CREATE", template: named, importExisting: true }),
    ).toEqual(["Import Table"]);
    expect(aws().cloudFormation.stack(stack)?.status).toBe("CREATE_COMPLETE");
  });

  it("rolls a creation back that fails, with its events page by page", async () => {
    const client = new CloudFormationClient(settings());
    const stack = freshTableName();
    aws().cloudFormation.failAt("Log", "No more logs");
    aws().cloudFormation.pageSize = 3;
    await executed(client, stack, { type: "CREATE" });
    const events: string[] = [];
    let token: string | undefined;
    do {
      const { StackEvents, NextToken } = await client.send(
        new DescribeStackEventsCommand({ StackName: stack, NextToken: token }),
      );
      events.push(...StackEvents!.map((e) => `${e.LogicalResourceId} ${e.ResourceStatus}`));
      token = NextToken;
    } while (token !== undefined);
    aws().cloudFormation.pageSize = 100;
    expect(events.toReversed()).toEqual([
      `${stack} REVIEW_IN_PROGRESS`,
      `${stack} CREATE_IN_PROGRESS`,
      "Table CREATE_IN_PROGRESS",
      "Log CREATE_IN_PROGRESS",
      "Table CREATE_COMPLETE",
      "Log CREATE_FAILED",
      `${stack} ROLLBACK_IN_PROGRESS`,
      "Table DELETE_IN_PROGRESS",
      "Table DELETE_COMPLETE",
      `${stack} ROLLBACK_COMPLETE`,
    ]);
  });

  it("tells services apart, and lets requests fail as they do on AWS", async () => {
    const { Account } = await new STSClient(settings()).send(new GetCallerIdentityCommand({}));
    expect(Account).toBe(aws().account);
    const s3 = new S3Client({ ...settings(), forcePathStyle: true });
    await expect(s3.send(new HeadBucketCommand({ Bucket: "none" }))).rejects.toMatchObject({
      $metadata: { httpStatusCode: 404 },
    });
    aws().s3.create("code");
    await s3.send(new PutObjectCommand({ Bucket: "code", Key: "a/b.zip", Body: "content" }));
    expect(String(aws().s3.buckets.get("code")?.objects.get("a/b.zip"))).toBe("content");
    await expect(
      new LambdaClient(settings()).send(new GetFunctionCommand({ FunctionName: "none" })),
    ).rejects.toMatchObject({ name: "ResourceNotFoundException" });

    const client = new CloudFormationClient(settings());
    aws().faults.throttle("DescribeStacks", 1);
    aws().faults.next("DescribeStacks", "drop", "deny");
    const look = () => client.send(new DescribeStacksCommand({}));
    await expect(look()).rejects.toMatchObject({ name: "Throttling" });
    await expect(look()).rejects.toMatchObject({ code: "ECONNRESET" });
    await expect(look()).rejects.toMatchObject({
      name: "AccessDenied",
      message: expect.stringContaining("cloudformation:DescribeStacks"),
    });
    await look();
  });
});
