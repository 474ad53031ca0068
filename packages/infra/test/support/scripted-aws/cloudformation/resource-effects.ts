import { createHash } from "node:crypto";
import {
  CreateTableCommand,
  DeleteTableCommand,
  DescribeTableCommand,
  DynamoDBClient,
  UpdateTimeToLiveCommand,
  type CreateTableCommandInput,
} from "@aws-sdk/client-dynamodb";
import type { ScriptedCloudWatch, ScriptedSqs } from "../monitoring.ts";
import type { ScriptedLambda } from "../scripted-lambda.ts";
import type { ScriptedS3 } from "../scripted-s3.ts";

/** The services in which resources have an effect. */
export interface Services {
  readonly account: string;
  readonly engineUrl: string;
  readonly s3: ScriptedS3;
  readonly lambda: ScriptedLambda;
  readonly cloudWatch: ScriptedCloudWatch;
  readonly sqs: ScriptedSqs;
}

/** A resource that is to be made. */
export interface WantedResource {
  readonly stack: string;
  readonly region: string;
  readonly logicalId: string;
  readonly type: string;
  readonly properties: Readonly<Record<string, unknown>>;
  readonly tags: Readonly<Record<string, string>>;
}

/** What was made: its id, and what `Fn::GetAtt` returns for it. */
export interface MadeResource {
  readonly physicalId: string;
  readonly attributes: Readonly<Record<string, string>>;
}

/** Makes and deletes resources: tables for real, on the engine; the others in scripted services. */
export class ResourceEffects {
  readonly #services: Services;
  readonly #client: DynamoDBClient;

  constructor(services: Services) {
    this.#services = services;
    this.#client = new DynamoDBClient({
      endpoint: services.engineUrl,
      region: "eu-west-1",
      credentials: { accessKeyId: "local", secretAccessKey: "local" },
    });
  }

  close(): void {
    this.#client.destroy();
  }

  /** Whether a table is there. */
  async tableExists(name: string): Promise<boolean> {
    return (await this.#streamArn(name)) !== undefined;
  }

  /** Makes a resource. Throws with the reason, as an event words it, if it cannot. */
  async make(wanted: WantedResource): Promise<MadeResource> {
    if (wanted.type === "AWS::DynamoDB::Table") await this.#createTable(wanted);
    return this.adopt(wanted);
  }

  /** Changes a resource in place, or takes over one that exists. */
  async adopt(wanted: WantedResource): Promise<MadeResource> {
    const { account, s3, cloudWatch } = this.#services;
    const { stack, region, logicalId, type, properties: given } = wanted;
    const text = (name: string): string | undefined => given[name] as string | undefined;
    const arn = (service: string, rest: string, place = region): string =>
      `arn:aws:${service}:${place}:${account}:${rest}`;
    const generated = `${stack}-${logicalId}-${hash(`${stack}/${logicalId}`).slice(0, 12)}`;
    switch (type) {
      case "AWS::DynamoDB::Table": {
        const name = text("TableName") ?? generated;
        const streamArn = (await this.#streamArn(name)) ?? "";
        return made(name, { Arn: arn("dynamodb", `table/${name}`), StreamArn: streamArn });
      }
      case "AWS::S3::Bucket": {
        const name = text("BucketName") ?? generated.toLowerCase();
        if (!s3.buckets.has(name)) s3.create(name, { region });
        return made(name, { Arn: `arn:aws:s3:::${name}` });
      }
      case "AWS::SQS::Queue":
        return this.#queue(
          text("QueueName") ?? generated,
          arn("sqs", text("QueueName") ?? generated),
        );
      case "AWS::Lambda::Function":
        return this.#function(text("FunctionName") ?? generated, wanted);
      case "AWS::Lambda::EventSourceMapping":
        return this.#mapping(wanted);
      case "AWS::CloudWatch::Alarm": {
        const name = text("AlarmName") ?? generated;
        const state = cloudWatch.alarms.get(name)?.StateValue ?? "OK";
        cloudWatch.alarms.set(name, { ...given, AlarmName: name, StateValue: state });
        return made(name, { Arn: arn("cloudwatch", `alarm:${name}`) });
      }
      case "AWS::IAM::Role": {
        const name = text("RoleName") ?? generated;
        return made(name, { Arn: arn("iam", `role/${name}`, ""), RoleId: "AROA" });
      }
      case "AWS::IAM::ManagedPolicy": {
        const name = text("ManagedPolicyName") ?? generated;
        const policyArn = arn("iam", `policy/${name}`, "");
        return made(policyArn, { PolicyArn: policyArn });
      }
      case "AWS::Logs::LogGroup": {
        const name = text("LogGroupName") ?? generated;
        return made(name, { Arn: arn("logs", `log-group:${name}:*`) });
      }
      default:
        return made(generated, { Arn: generated });
    }
  }

  /** Deletes a resource. Throws with the reason if it cannot. */
  async unmake(
    type: string,
    physicalId: string,
    properties: WantedResource["properties"],
  ): Promise<void> {
    const { s3, lambda, cloudWatch, sqs } = this.#services;
    switch (type) {
      case "AWS::DynamoDB::Table":
        if (String(properties["DeletionProtectionEnabled"]) === "true")
          throw new Error(
            `Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first. (Table: ${physicalId})`,
          );
        await this.#client
          .send(new DeleteTableCommand({ TableName: physicalId }))
          .catch((error: unknown) => {
            if ((error as Error).name !== "ResourceNotFoundException") throw error;
          });
        return;
      case "AWS::S3::Bucket":
        if ((s3.buckets.get(physicalId)?.objects.size ?? 0) > 0)
          throw new Error("The bucket you tried to delete is not empty");
        s3.buckets.delete(physicalId);
        return;
      case "AWS::Lambda::Function":
        lambda.functions.delete(physicalId);
        return;
      case "AWS::Lambda::EventSourceMapping":
        lambda.mappings.delete(physicalId);
        return;
      case "AWS::CloudWatch::Alarm":
        cloudWatch.alarms.delete(physicalId);
        return;
      case "AWS::SQS::Queue":
        sqs.queues.delete(physicalId.split("/").at(-1)!);
        return;
      default:
    }
  }

  async #streamArn(TableName: string): Promise<string | undefined> {
    try {
      const { Table } = await this.#client.send(new DescribeTableCommand({ TableName }));
      return Table?.LatestStreamArn ?? "";
    } catch (error) {
      if ((error as Error).name === "ResourceNotFoundException") return undefined;
      throw error;
    }
  }

  async #createTable({ properties }: WantedResource): Promise<void> {
    const {
      TimeToLiveSpecification,
      PointInTimeRecoverySpecification: _,
      StreamSpecification,
      SSESpecification: __,
      Tags: ___,
      DeletionProtectionEnabled: ____,
      ContributorInsightsSpecification: _____,
      ...rest
    } = properties as Record<string, unknown>;
    const input = {
      ...(withNumbers(rest) as object),
      ...(StreamSpecification !== undefined && {
        StreamSpecification: { StreamEnabled: true, ...(StreamSpecification as object) },
      }),
    } as unknown as CreateTableCommandInput;
    const TableName = input.TableName!;
    try {
      await this.#client.send(new CreateTableCommand(input));
    } catch (error) {
      if ((error as Error).name === "ResourceInUseException")
        throw new Error(
          `Resource of type 'AWS::DynamoDB::Table' with identifier '${TableName}' already exists.`,
          { cause: error },
        );
      throw error;
    }
    if (TimeToLiveSpecification !== undefined)
      await this.#client.send(
        new UpdateTimeToLiveCommand({
          TableName,
          TimeToLiveSpecification: TimeToLiveSpecification as never,
        }),
      );
  }

  #queue(name: string, queueArn: string): MadeResource {
    const url = `https://sqs.amazonaws.com/${this.#services.account}/${name}`;
    const { queues } = this.#services.sqs;
    if (!queues.has(name))
      queues.set(name, { QueueUrl: url, QueueArn: queueArn, ApproximateNumberOfMessages: "0" });
    return made(url, { Arn: queueArn, QueueName: name, QueueUrl: url });
  }

  #function(name: string, { region, properties, tags }: WantedResource): MadeResource {
    const { lambda } = this.#services;
    const {
      Code = {},
      ReservedConcurrentExecutions,
      ...rest
    } = properties as {
      Code?: { S3Bucket?: string; S3Key?: string };
      ReservedConcurrentExecutions?: number;
    };
    if (
      Code.S3Key !== undefined &&
      this.#services.s3.buckets.get(Code.S3Bucket!)?.objects.has(Code.S3Key) !== true
    )
      throw new Error(
        `Error occurred while GetObject. S3 Error Code: NoSuchKey. S3 Error Message: The specified key does not exist. (Service: Lambda)`,
      );
    const functionArn = lambda.arnOf(name, region);
    lambda.functions.set(name, {
      configuration: {
        ...rest,
        FunctionName: name,
        FunctionArn: functionArn,
        State: "Active",
        LastUpdateStatus: "Successful",
        LastModified: "2026-01-01T00:00:00.000+0000",
        CodeSha256: hash(`${Code.S3Bucket}/${Code.S3Key}`),
      },
      code: { bucket: Code.S3Bucket!, key: Code.S3Key! },
      tags: { ...tags },
      ...(ReservedConcurrentExecutions !== undefined && {
        reservedConcurrency: ReservedConcurrentExecutions,
      }),
    });
    return made(name, { Arn: functionArn });
  }

  #mapping({ stack, region, logicalId, properties }: WantedResource): MadeResource {
    const { lambda } = this.#services;
    const UUID = `${hash(`${region}/${stack}/${logicalId}`).slice(0, 8)}-0000-4000-8000-000000000000`;
    const name = String(properties["FunctionName"]).split(":").at(-1)!;
    lambda.mappings.set(UUID, {
      ...properties,
      UUID,
      FunctionArn: lambda.arnOf(name, region),
      EventSourceArn: String(properties["EventSourceArn"]),
      State: "Enabled",
      LastProcessingResult: "No records processed",
    });
    return made(UUID, { Id: UUID });
  }
}

function made(physicalId: string, attributes: Readonly<Record<string, string>>): MadeResource {
  return { physicalId, attributes };
}

/** Parameters are texts, also where the API wants a number of units. */
function withNumbers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withNumbers);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, field]: [string, unknown]) => [
    name,
    name.endsWith("Units") ? Number(field) : withNumbers(field),
  ]);
  return Object.fromEntries(entries);
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
