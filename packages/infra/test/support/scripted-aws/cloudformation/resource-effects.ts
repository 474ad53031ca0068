import { createHash } from "node:crypto";
import {
  CreateTableCommand,
  DeleteTableCommand,
  DescribeTableCommand,
  DynamoDBClient,
  UpdateTimeToLiveCommand,
  type CreateTableCommandInput,
} from "@aws-sdk/client-dynamodb";
import type { ScriptedS3 } from "../scripted-s3.ts";

/** The services in which resources have an effect. */
export interface Services {
  readonly account: string;
  readonly engineUrl: string;
  readonly s3: ScriptedS3;
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

/** A created resource: its id, and what `Fn::GetAtt` returns for it. */
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
    if (wanted.type === TABLE) await this.#createTable(wanted);
    return this.adopt(wanted);
  }

  /** Changes a resource in place, or takes over one that exists. */
  async adopt(wanted: WantedResource): Promise<MadeResource> {
    const { account, s3 } = this.#services;
    const { stack, region, logicalId, type, properties } = wanted;
    const suffixed = `${stack}-${logicalId}-${hash(`${stack}/${logicalId}`).slice(0, 12)}`;
    const generated = type === "AWS::S3::Bucket" ? suffixed.toLowerCase() : suffixed;
    const [nameProperty, arnPattern] = NAMES[type] ?? [];
    const name = (properties[nameProperty ?? ""] ?? generated) as string;
    const arn = (arnPattern ?? "NAME")
      .replace("PLACE", `${region}:${account}`)
      .replace("ACCOUNT", account)
      .replace("NAME", name);
    if (type === "AWS::S3::Bucket" && !s3.buckets.has(name)) s3.create(name, { region });
    if (type === "AWS::Lambda::Function") this.#checkCode(properties);
    const streamArn = type === TABLE ? ((await this.#streamArn(name)) ?? "") : "";
    return {
      physicalId: type === "AWS::IAM::ManagedPolicy" ? arn : name,
      attributes: { Arn: arn, PolicyArn: arn, StreamArn: streamArn },
    };
  }

  /** Deletes a resource. Throws with the reason if it cannot. */
  async unmake(
    type: string,
    physicalId: string,
    properties: WantedResource["properties"],
  ): Promise<void> {
    const { buckets } = this.#services.s3;
    if (type === "AWS::S3::Bucket") {
      if ((buckets.get(physicalId)?.objects.size ?? 0) > 0)
        throw new Error("The bucket you tried to delete is not empty");
      buckets.delete(physicalId);
    }
    if (type !== TABLE) return;
    if (String(properties["DeletionProtectionEnabled"]) === "true")
      throw new Error(
        `Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first. (Table: ${physicalId})`,
      );
    const command = new DeleteTableCommand({ TableName: physicalId });
    await this.#client.send(command).catch((error: unknown) => {
      if ((error as Error).name !== "ResourceNotFoundException") throw error;
    });
  }

  #checkCode({ Code }: WantedResource["properties"]): void {
    const { S3Bucket = "", S3Key = "" } = Code as { S3Bucket?: string; S3Key?: string };
    if (this.#services.s3.buckets.get(S3Bucket)?.objects.has(S3Key) !== true)
      throw new Error(
        "Error occurred while GetObject. S3 Error Code: NoSuchKey. S3 Error Message: The specified key does not exist. (Service: Lambda)",
      );
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
}

const TABLE = "AWS::DynamoDB::Table";

/** The property that names a resource of a type, and its ARN. */
const NAMES: Readonly<Record<string, readonly [name: string, arn: string]>> = {
  [TABLE]: ["TableName", "arn:aws:dynamodb:PLACE:table/NAME"],
  "AWS::S3::Bucket": ["BucketName", "arn:aws:s3:::NAME"],
  "AWS::SQS::Queue": ["QueueName", "arn:aws:sqs:PLACE:NAME"],
  "AWS::Lambda::Function": ["FunctionName", "arn:aws:lambda:PLACE:function:NAME"],
  "AWS::CloudWatch::Alarm": ["AlarmName", "arn:aws:cloudwatch:PLACE:alarm:NAME"],
  "AWS::IAM::Role": ["RoleName", "arn:aws:iam::ACCOUNT:role/NAME"],
  "AWS::IAM::ManagedPolicy": ["ManagedPolicyName", "arn:aws:iam::ACCOUNT:policy/NAME"],
  "AWS::Logs::LogGroup": ["LogGroupName", "arn:aws:logs:PLACE:log-group:NAME:*"],
};

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
