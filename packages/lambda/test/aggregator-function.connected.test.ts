import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import {
  CreateBucketCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  type S3Client,
} from "@aws-sdk/client-s3";
import { Limit, RateLimiter } from "zae-limiter";
import { DynamoRepository, leanTransport, type DynamoTransport } from "zae-limiter/dynamodb";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished, vi } from "vitest";
import { TIME_TO_LIVE } from "../../limiter/test/support/audit-records.ts";
import { whyMissing } from "../../limiter/test/support/engine-process.ts";
import { describeUnlessMissing, freshTableName } from "../../limiter/test/support/engine.ts";
import { s3ClientAt, startS3, whyS3IsMissing } from "../../limiter/test/support/s3-process.ts";
import type { StartedServer } from "../../limiter/test/support/server-process.ts";
import { availableOrSkipped } from "../../../test/package/available.ts";
import { node22, node24 } from "../../../tools/fetch-packages.mjs";
import { bundleFunction } from "../../../tools/lambda.mjs";
import { FunctionProcess } from "./support/function-process.ts";
import { readStream, type LambdaRecord } from "./support/table-stream.ts";

/** Those that Lambda offers. */
const NODES = [
  ["Node 22", availableOrSkipped("Node 22", node22)],
  ["Node 24", availableOrSkipped("Node 24", node24)],
] as const;

const CREDENTIALS = { accessKeyId: "local", secretAccessKey: "local" };
const ALL_WELL = { result: { batchItemFailures: [] } };

describeUnlessMissing("the bundled aggregator", whyMissing() ?? whyS3IsMissing(), () => {
  const folder = mkdtempSync(join(tmpdir(), "bundle-"));
  let bundle: string;
  let s3: StartedServer;
  let s3Client: S3Client;
  let transport: DynamoTransport;

  beforeAll(async () => {
    [bundle, s3, transport] = await Promise.all([
      bundleFunction("aggregator", join(folder, "index.mjs")),
      startS3(),
      leanTransport({ endpointUrl: inject("engine")!.endpointUrl, credentials: CREDENTIALS }),
    ]);
    s3Client = s3ClientAt(s3.endpointUrl);
    console.info(`the bundle: ${Math.round(statSync(bundle).size / 1000)} kB`);
  }, 60_000);
  afterAll(async () => {
    rmSync(folder, { recursive: true });
    transport?.close();
    s3Client?.destroy();
    await s3?.stop();
  });

  /** A table, what its clients did, and a function for it. */
  class World {
    readonly tableName = freshTableName();
    readonly bucket = this.tableName.toLowerCase();
    repository!: DynamoRepository;
    fn!: FunctionProcess;

    async start(node: string): Promise<this> {
      const { endpointUrl } = inject("engine")!;
      this.repository = await DynamoRepository.open("team", {
        stack: this.tableName,
        transport,
        provisioning: "table",
      });
      onTestFinished(() => this.repository.close());
      this.fn = await FunctionProcess.start({
        node,
        bundle,
        environment: {
          TABLE_NAME: this.tableName,
          AWS_REGION: "us-east-1",
          AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
          AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
          AWS_ENDPOINT_URL_DYNAMODB: endpointUrl,
          AWS_ENDPOINT_URL_S3: s3.endpointUrl,
          ARCHIVE_BUCKET_NAME: this.bucket,
        },
      });
      onTestFinished(() => this.fn.stop());
      return this;
    }

    /** Calls, and two audit events that are deleted. */
    async live(): Promise<void> {
      await this.repository.setSystemDefaults([
        Limit.perMinute("rpm", 100),
        Limit.perMinute("tpm", 1000),
      ]);
      await this.repository.createEntity("key-1");
      const limiter = new RateLimiter({ repository: this.repository });
      const call = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1, tpm: 100 } };
      for (const tpm of [100, 70, 130])
        await limiter.acquire(call, (lease) => lease.settle({ tpm }));
      await limiter.close();
      for (const { dynamodb } of (await this.#records()).filter(isEvent))
        await this.#call("DeleteItem", { Key: dynamodb.Keys });
    }

    /**
     * Everything in the stream. Of the deleted events, that of the entity looks expired: no engine
     * here deletes anything because its time to live is over.
     */
    async batch(): Promise<readonly LambdaRecord[]> {
      const records = await this.#records();
      return records.map((record) =>
        isExpired(record) ? Object.assign(record, { userIdentity: TIME_TO_LIVE }) : record,
      );
    }

    #records(): Promise<readonly LambdaRecord[]> {
      return readStream(inject("engine")!.endpointUrl, this.tableName);
    }

    /** The snapshots of the entity, without what the engine does not promise to order. */
    async usage(): Promise<readonly Readonly<Record<string, { readonly N?: string }>>[]> {
      const { namespaceId } = this.repository;
      return this.#items(`${namespaceId}/ENTITY#key-1`, "#USAGE#");
    }

    /** What was consumed in all windows of one length. */
    async consumed(window: string): Promise<readonly number[]> {
      const snapshots = await this.#items(
        `${this.repository.namespaceId}/ENTITY#key-1`,
        `#USAGE#${window}#`,
      );
      return ["u_rpm", "u_tpm", "requests"].map((name) =>
        snapshots.reduce((sum, item) => sum + Number(item[name]?.N ?? 0), 0),
      );
    }

    async pulses(): Promise<number> {
      return (await this.#items("_/SYSTEM#", "#PULSE")).length;
    }

    async archived(): Promise<Readonly<Record<string, readonly unknown[]>>> {
      const Bucket = this.bucket;
      const { Contents = [] } = await s3Client.send(new ListObjectsV2Command({ Bucket }));
      const found: Record<string, unknown[]> = {};
      for (const { Key } of Contents) {
        const { Body } = await s3Client.send(new GetObjectCommand({ Bucket, Key: Key! }));
        const lines = gunzipSync(await Body!.transformToByteArray())
          .toString()
          .trimEnd()
          .split("\n");
        found[Key!] = lines.map((line) => JSON.parse(line) as unknown);
      }
      return found;
    }

    async #items(
      partition: string,
      prefix: string,
    ): Promise<readonly Record<string, { readonly N?: string }>[]> {
      const { Items } = (await this.#call("Query", {
        ConsistentRead: true,
        KeyConditionExpression: "PK = :p AND begins_with(SK, :s)",
        ExpressionAttributeValues: { ":p": { S: partition }, ":s": { S: prefix } },
      })) as { readonly Items: Record<string, { readonly N?: string }>[] };
      return Items;
    }

    #call(operation: string, input: object): Promise<object> {
      return transport.call(
        operation,
        { TableName: this.tableName, ...input },
        { signal: AbortSignal.timeout(10_000) },
      );
    }

    /** Waits for lines, which take another way than the answer. */
    async lines(count: number): Promise<readonly unknown[]> {
      const lines: unknown[] = [];
      await vi.waitFor(() => {
        lines.push(...this.fn.takeLines());
        expect(lines.length).toBeGreaterThanOrEqual(count);
      }, 10_000);
      return lines;
    }
  }

  describe.each(NODES.filter(([, node]) => node !== undefined))("on %s", (_, node) => {
    it("counts usage once and archives what expired, with only the bundle [W-25, W-26]", async () => {
      const world = await new World().start(node!);
      await s3Client.send(new CreateBucketCommand({ Bucket: world.bucket }));
      await world.live();
      const Records = await world.batch();
      expect(world.fn.files).toEqual(["index.mjs"]);

      expect(await world.fn.invoke({ Records })).toEqual(ALL_WELL);
      for (const window of ["hourly", "daily", "monthly"])
        expect(await world.consumed(window), window).toEqual([3000, 300_000, 3]);
      const archived = await world.archived();
      expect(Object.keys(archived)).toEqual([
        expect.stringMatching(
          /^audit\/namespace=team\/year=\d{4}\/month=\d\d\/day=\d\d\/\w+-\w+\.jsonl\.gz$/,
        ),
      ]);
      expect(Object.values(archived)).toEqual([
        [
          expect.objectContaining({
            entity_id: "key-1",
            action: "entity_created",
            namespace: "team",
          }),
        ],
      ]);
      expect(await world.lines(1)).toEqual([
        expect.objectContaining({
          _aws: expect.anything() as unknown,
          TableName: world.tableName,
          Records: Records.length,
          Failures: 0,
          Archived: 1,
          SnapshotWrites: (await world.usage()).length,
        }),
      ]);

      // Delivered again, whole and in part, it changes nothing.
      const usage = await world.usage();
      for (const again of [Records, Records.slice(-3)])
        expect(await world.fn.invoke({ Records: again })).toEqual(ALL_WELL);
      expect(await world.usage()).toEqual(usage);
      expect(await world.archived()).toEqual(archived);
      expect(await world.lines(2)).toEqual([
        expect.objectContaining({ SnapshotWrites: 0 }),
        expect.objectContaining({ SnapshotWrites: 0, Records: 3 }),
      ]);
    });

    it("writes a pulse by a schedule, and fails on any other event", async () => {
      const world = await new World().start(node!);
      expect(await world.pulses()).toBe(0);
      expect(await world.fn.invoke({ source: "aws.events" })).toEqual(ALL_WELL);
      expect(await world.pulses()).toBe(1);
      expect(await world.fn.invoke({ source: "aws.s3" })).toMatchObject({
        error: {
          errorMessage: expect.stringContaining("check what invokes this function") as unknown,
        },
      });
    });
  });
});

/** Whether a record is that of a new audit event. */
function isEvent({ eventName, dynamodb }: LambdaRecord): boolean {
  return eventName === "INSERT" && dynamodb.Keys["PK"]!.S.includes("/AUDIT#");
}

/** Whether a record is that of the deleted event that is to look expired. */
function isExpired({ eventName, dynamodb }: LambdaRecord): boolean {
  return eventName === "REMOVE" && dynamodb.Keys["PK"]!.S.endsWith("/AUDIT#key-1");
}
