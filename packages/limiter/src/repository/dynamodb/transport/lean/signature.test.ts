import { createHash, createHmac, type Hash, type Hmac } from "node:crypto";
import { SignatureV4 } from "@smithy/signature-v4";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { endpointAt } from "./endpoint.ts";
import { CONTENT_TYPE, Signer, type Signature } from "./signature.ts";
import type { AwsCredentials } from "../local-engine.ts";

const EXAMPLE: AwsCredentials = {
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
};

it("signs an example request exactly", () => {
  const signer = new Signer({
    host: "dynamodb.us-east-1.amazonaws.com",
    path: "/",
    region: "us-east-1",
  });
  const nowMs = Date.UTC(2015, 7, 30, 12, 36, 0);
  const request = {
    credentials: EXAMPLE,
    target: "DynamoDB_20120810.ListTables",
    body: "{}",
    nowMs,
  };
  expect(signer.sign(request)).toEqual({
    date: "20150830T123600Z",
    authorization:
      "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/dynamodb/aws4_request, " +
      "SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=75214f17608dbd636679e18f6f89744844ae96fcd228b8147167152488d817de",
  });
});

const text = fc
  .string({ minLength: 1, maxLength: 40 })
  .map((value) => value.replaceAll(/[^!-~]/g, "x"));
const requests = fc.record({
  accessKeyId: text,
  secretAccessKey: fc.string({ minLength: 1, unit: "grapheme" }),
  sessionToken: fc.option(fc.oneof(text, fc.constant("")), { nil: undefined }),
  region: fc.constantFrom("us-east-1", "eu-central-1", "cn-north-1"),
  address: fc.webUrl({ validSchemes: ["http", "https"], withQueryParameters: false }),
  operation: fc.constantFrom("UpdateItem", "GetItem", "TransactWriteItems"),
  body: fc.json(),
  nowMs: fc.integer({ min: 0, max: Date.UTC(2100, 0) }),
});

it("signs as AWS's own library does, for any request, time and credentials", async () => {
  await fc.assert(
    fc.asyncProperty(
      requests,
      async ({ address, region, operation, body, nowMs, ...credentials }) => {
        const { host, path } = endpointAt(address);
        const target = `DynamoDB_20120810.${operation}`;
        const ours = new Signer({ host, path, region }).sign({ credentials, target, body, nowMs });
        expect(ours).toEqual(
          await theirs({ host, path, region, credentials, target, body, nowMs }),
        );
      },
    ),
    { numRuns: 500 },
  );
});

it("signs one request after another, whatever changes between them", async () => {
  const place = { host: "127.0.0.1:8000", path: "/", region: "eu-west-1" };
  const signer = new Signer(place);
  const other = { ...EXAMPLE, secretAccessKey: "another" };
  const lent = { ...EXAMPLE, sessionToken: "token" };
  const second = 1000;
  const day = 86_400_000;
  const whens = [0, second - 1, second, day - 1, day, 0];
  for (const nowMs of whens)
    for (const credentials of [EXAMPLE, other, lent, EXAMPLE])
      for (const [operation, body] of [
        ["GetItem", "{}"],
        ["UpdateItem", '{"Key":{}}'],
      ] as const) {
        const request = { credentials, target: `DynamoDB_20120810.${operation}`, body, nowMs };
        expect(signer.sign(request)).toEqual(await theirs({ ...place, ...request }));
      }
});

interface Whole {
  readonly host: string;
  readonly path: string;
  readonly region: string;
  readonly credentials: AwsCredentials;
  readonly target: string;
  readonly body: string;
  readonly nowMs: number;
}

async function theirs({
  host,
  path,
  region,
  credentials,
  target,
  body,
  nowMs,
}: Whole): Promise<Signature> {
  const given = {
    accessKeyId: credentials.accessKeyId,
    secretAccessKey: credentials.secretAccessKey,
  };
  const token =
    credentials.sessionToken === undefined ? {} : { sessionToken: credentials.sessionToken };
  const signer = new SignatureV4({
    credentials: { ...given, ...token },
    region,
    service: "dynamodb",
    sha256: Sha256,
    applyChecksum: false,
  });
  const headers = { host, "content-type": CONTENT_TYPE, "x-amz-target": target };
  const request = {
    method: "POST",
    protocol: "https:",
    hostname: host,
    path,
    query: {},
    headers,
    body,
  };
  const signed = await signer.sign(request, { signingDate: new Date(nowMs) });
  return { date: signed.headers["x-amz-date"]!, authorization: signed.headers["authorization"]! };
}

/** Node's hashes in the shape that the library expects. */
class Sha256 {
  readonly #hash: Hash | Hmac;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash =
      secret === undefined
        ? createHash("sha256")
        : createHmac("sha256", secret as string | NodeJS.ArrayBufferView);
  }

  update(data: Uint8Array): void {
    this.#hash.update(data);
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {}
}
