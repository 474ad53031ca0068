import { CloudFormationClient } from "@aws-sdk/client-cloudformation";
import { CloudWatchClient } from "@aws-sdk/client-cloudwatch";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LambdaClient } from "@aws-sdk/client-lambda";
import { SQSClient } from "@aws-sdk/client-sqs";
import type { StackPlace } from "./place.ts";

export interface AwsClients {
  readonly stack: string;
  readonly region: string;
  readonly endpointUrl: string | undefined;
  readonly cloudFormation: CloudFormationClient;
  readonly cloudWatch: CloudWatchClient;
  readonly dynamoDb: DynamoDBClient;
  readonly lambda: LambdaClient;
  readonly sqs: SQSClient;
  close(): void;
}

/** Opens the clients of a place. */
export async function openClients(place: StackPlace): Promise<AwsClients> {
  const { stack = process.env["ZAEL_STACK"] || "zae-limiter", region, endpointUrl } = place;
  const isLocal = endpointUrl !== undefined && /127\.0\.0\.1|localhost/.test(endpointUrl);
  const configuration = {
    ...(region !== undefined && { region }),
    ...(endpointUrl !== undefined && { endpoint: endpointUrl }),
    ...(isLocal &&
      !process.env["AWS_ACCESS_KEY_ID"] && {
        credentials: { accessKeyId: "local", secretAccessKey: "local" },
      }),
  };
  const clients = {
    cloudFormation: new CloudFormationClient(configuration),
    cloudWatch: new CloudWatchClient(configuration),
    dynamoDb: new DynamoDBClient(configuration),
    lambda: new LambdaClient(configuration),
    sqs: new SQSClient({ ...configuration, useQueueUrlAsEndpoint: false }),
  };
  return {
    ...clients,
    stack,
    region: await clients.dynamoDb.config.region(),
    endpointUrl,
    close: () => {
      for (const client of Object.values(clients)) client.destroy();
    },
  };
}
