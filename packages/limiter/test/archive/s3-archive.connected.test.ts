import { createHash } from "node:crypto";
import {
  CreateBucketCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  type S3Client,
} from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import {
  s3Archive,
  type AuditArchive,
  type S3ArchiveClient,
  type S3ArchiveOptions,
} from "zae-limiter/aggregator";
import { describeUnlessMissing } from "../support/engine.ts";
import { s3ClientAt, startS3, whyS3IsMissing } from "../support/s3-process.ts";
import { startScriptedServer } from "../support/scripted-server.ts";
import type { StartedServer } from "../support/server-process.ts";

const NAME = "audit/namespace=a/year=2026/month=01/day=15/01A-0.jsonl.gz";
const CONTENT = Buffer.from("content");

describeUnlessMissing("an archive in S3", whyS3IsMissing(), () => {
  let s3: StartedServer;
  let client: S3Client;
  let buckets = 0;

  beforeAll(async () => {
    s3 = await startS3();
    client = s3ClientAt(s3.endpointUrl);
  }, 60_000);
  afterAll(async () => {
    client?.destroy();
    await s3?.stop();
  });

  const archiveAt = (path: string, options: S3ArchiveOptions = {}): Promise<AuditArchive> =>
    s3Archive(`s3://${path}`, { region: "us-east-1", endpointUrl: s3.endpointUrl, ...options });

  async function newBucket(): Promise<string> {
    const Bucket = `archive-${(buckets += 1)}`;
    await client.send(new CreateBucketCommand({ Bucket }));
    return Bucket;
  }

  async function listObjects(Bucket: string): Promise<readonly string[]> {
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket }));
    return Contents.map(({ Key }) => Key!);
  }

  it("holds objects under its prefix, with type, encoding and checksum", async () => {
    const bucket = await newBucket();
    await (await archiveAt(`${bucket}/some/prefix/`)).store(NAME, CONTENT);
    await (await archiveAt(bucket, { client })).store(NAME, CONTENT);
    expect(await listObjects(bucket)).toEqual([NAME, `some/prefix/${NAME}`]);
    const head = new HeadObjectCommand({ Bucket: bucket, Key: NAME, ChecksumMode: "ENABLED" });
    expect(await client.send(head)).toMatchObject({
      ContentType: "application/x-ndjson",
      ContentEncoding: "gzip",
      ContentLength: CONTENT.length,
      ChecksumSHA256: createHash("sha256").update(CONTENT).digest("base64"),
    });
  });

  it("says that the bucket does not exist", async () => {
    await expect((await archiveAt("not-there/x")).store(NAME, CONTENT)).rejects.toMatchObject({
      code: "ERR_LIMITER_INFRASTRUCTURE_NOT_FOUND",
      message:
        "The bucket not-there of the archive does not exist: create it, or correct s3://not-there/x/.",
    });
  });
});

/** What moto never answers. */
describe("an S3 that refuses", () => {
  it.each([
    [
      403,
      "AccessDenied",
      "ERR_LIMITER_PERMISSION_DENIED",
      /allow s3:PutObject on .*:::bbb\/p\/\*\.$/,
    ],
    [
      507,
      "Whatever",
      "ERR_LIMITER_ARCHIVE_FULL",
      /^The archive s3:\/\/bbb\/p\/ is full: make room/,
    ],
    [400, "QuotaExceeded", "ERR_LIMITER_ARCHIVE_FULL", /is full/],
    [
      503,
      "SlowDown",
      "ERR_LIMITER_ARCHIVE_UNAVAILABLE",
      /\(SlowDown: .*\): its events stay in the stream/,
    ],
  ])(
    "with %i %s is an error with a code that says what to do",
    async (status, name, code, message) => {
      const server = await startScriptedServer();
      onTestFinished(() => server.stop());
      server.answer = (outgoing) => {
        outgoing.writeHead(status, { "content-type": "application/xml" });
        outgoing.end(`<Error><Code>${name}</Code><Message>no</Message></Error>`);
      };
      const client = s3ClientAt(server.endpointUrl);
      const archive = await s3Archive("s3://bbb/p", { client });
      await expect(archive.store(NAME, CONTENT)).rejects.toMatchObject({
        code,
        message: expect.stringMatching(message),
      });
    },
  );

  it("by its silence is given up: every request can be ended", async () => {
    const signals: (AbortSignal | undefined)[] = [];
    const client: S3ArchiveClient = {
      send: async (_, options) => void signals.push(options?.abortSignal),
    };
    await (await s3Archive("s3://bbb", { client })).store(NAME, CONTENT);
    expect(signals).toEqual([expect.any(AbortSignal)]);
  });

  it("by not being there is unavailable", async () => {
    const archive = await s3Archive("s3://bbb", {
      region: "us-east-1",
      endpointUrl: "http://127.0.0.1:1",
    });
    await expect(archive.store(NAME, CONTENT)).rejects.toMatchObject({
      code: "ERR_LIMITER_ARCHIVE_UNAVAILABLE",
      message: expect.stringContaining("ECONNREFUSED"),
    });
  });
});

describe("the address of an archive in S3", () => {
  it.each(["", "s3://", "s3:/bucket", "https://bucket", "s3://B", "s3://bucket?x=1", undefined])(
    "is not %s",
    async (url) => {
      await expect(s3Archive(url as string)).rejects.toThrow(
        "must look like s3://my-bucket/prefix",
      );
    },
  );

  it("comes with options that are known", async () => {
    const options = { endpoint: "http://127.0.0.1:1" } as S3ArchiveOptions;
    await expect(s3Archive("s3://bucket", options)).rejects.toThrow("did you mean endpointUrl?");
  });

  it("without the SDK is an error that says how to install it", async () => {
    vi.doMock("@aws-sdk/client-s3", () => {
      throw new Error("Cannot find package");
    });
    onTestFinished(() => vi.doUnmock("@aws-sdk/client-s3"));
    await expect(s3Archive("s3://bucket")).rejects.toMatchObject({
      code: "ERR_LIMITER_CLIENT_MISSING",
      message: expect.stringContaining("npm install @aws-sdk/client-s3"),
    });
  });
});
