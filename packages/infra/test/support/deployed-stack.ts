import {
  CloudFormationClient,
  CreateChangeSetCommand,
  DescribeChangeSetCommand,
  ExecuteChangeSetCommand,
} from "@aws-sdk/client-cloudformation";
import { VERSION } from "zae-limiter";
import { freshTableName } from "../../../limiter/test/support/engine.ts";
import { stackTemplate } from "../../src/index.ts";
import type { ScriptedAws } from "./scripted-aws/scripted-aws.ts";

/** The tags of a stack that this version made. */
export const OUR_TAGS = {
  ManagedBy: "zae-limiter",
  "zae-limiter:type": "limiter",
  "zae-limiter:version": VERSION,
} as const;

/** Makes a stack from the template, with an aggregator, roles and alarms; returns its name. */
export async function deployedStack(
  aws: ScriptedAws,
  parameters: Readonly<Record<string, string>> = {},
): Promise<string> {
  const stack = freshTableName();
  aws.s3.create("code").objects.set("aggregator.zip", new Uint8Array());
  const client = new CloudFormationClient({
    endpoint: aws.endpointUrl,
    region: "eu-west-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
  const names = { StackName: stack, ChangeSetName: "changes" };
  const given = { CodeBucket: "code", AggregatorCodeKey: "aggregator.zip", ...parameters };
  await client.send(
    new CreateChangeSetCommand({
      ...names,
      ChangeSetType: "CREATE",
      Capabilities: ["CAPABILITY_NAMED_IAM"],
      TemplateBody: JSON.stringify({ ...stackTemplate(), Outputs: {} }),
      Parameters: Object.entries(given).map(([ParameterKey, ParameterValue]) => ({
        ParameterKey,
        ParameterValue,
      })),
      Tags: Object.entries(OUR_TAGS).map(([Key, Value]) => ({ Key, Value })),
    }),
  );
  let changeSet;
  do changeSet = await client.send(new DescribeChangeSetCommand(names));
  while (changeSet.Status !== "CREATE_COMPLETE");
  await client.send(new ExecuteChangeSetCommand(names));
  await aws.cloudFormation.advance(stack);
  client.destroy();
  return stack;
}
