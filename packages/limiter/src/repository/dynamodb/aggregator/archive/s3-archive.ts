import { createHash } from "node:crypto";
import {
  InfrastructureNotFoundError,
  PermissionDenied,
  ValidationError,
  type InfrastructureError,
} from "../../../../core/errors.ts";
import { checkOptions, optionNames } from "../../../../core/options.ts";
import { localCredentials, type Environment } from "../../transport/local-engine.ts";
import { checkRegion } from "../../transport/region.ts";
import { buildMissingClientError } from "../../transport/sdk-transport.ts";
import type { AuditArchive } from "./archive.ts";
import { buildArchiveFullError, buildArchiveUnavailableError } from "./archive-errors.ts";

/** The part of the SDK's S3Client that is used. */
export interface S3ArchiveClient {
  /**
   * Sends one command of the SDK.
   * @example await s3.send(new PutObjectCommand(object), { abortSignal });
   */
  send(
    command: never,
    options?: {
      /** Ends the request, which then rejects. */
      abortSignal?: AbortSignal;
    },
  ): Promise<unknown>;
}

/** How an archive in S3 is reached. */
export interface S3ArchiveOptions {
  /** The region of the bucket. @default `AWS_REGION`, or what the SDK finds */
  readonly region?: string;
  /** An address other than AWS's; the bucket then comes in the path, not in the host. */
  readonly endpointUrl?: string;
  /** An SDK client of your own. */
  readonly client?: S3ArchiveClient;
}

const OPTION_NAMES = optionNames<S3ArchiveOptions>({
  region: true,
  endpointUrl: true,
  client: true,
});

/**
 * Keeps audit events in a bucket of S3, or of a store that speaks its language. Needs
 * `@aws-sdk/client-s3`, and the right to `s3:PutObject`.
 *
 * @example
 * const archive = await s3Archive("s3://my-bucket/limits", { region: "eu-west-1" });
 * const aggregator = await openAggregator({ stack: "limits", archive });
 */
export async function s3Archive(
  url: string,
  options: S3ArchiveOptions = {},
): Promise<AuditArchive> {
  const place = parsePlace(url);
  checkOptions(options, OPTION_NAMES, "s3Archive");
  const { S3Client, PutObjectCommand } = await loadS3();
  const client = options.client ?? new S3Client(s3Configuration(options, process.env));
  return {
    async store(name, content) {
      const command = new PutObjectCommand(putInput(place, name, content)) as never;
      try {
        await client.send(command, { abortSignal: AbortSignal.timeout(STORE_TIMEOUT_MS) });
      } catch (error) {
        throw s3Error(place, error);
      }
    },
  };
}

interface Place {
  readonly url: string;
  readonly bucket: string;
  /** Empty, or ends in a slash. */
  readonly prefix: string;
}

/** Reads `s3://bucket/prefix`. */
function parsePlace(url: unknown): Place {
  const match = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([^?#]*))?$/.exec(String(url));
  if (match === null)
    throw new ValidationError("archive", url, "must look like s3://my-bucket/prefix");
  const path = (match[2] ?? "").replaceAll(/^\/+|\/+$/g, "");
  const prefix = path === "" ? "" : `${path}/`;
  return { url: `s3://${match[1]}/${prefix}`, bucket: match[1]!, prefix };
}

/** An object that hangs must not use up the minute that a Lambda function usually has. */
const STORE_TIMEOUT_MS = 20_000;
/** An attempt that hangs must leave time for another. */
const REQUEST_TIMEOUT_MS = 6_000;
const CONNECTION_TIMEOUT_MS = 3_000;

function s3Configuration(
  { region, endpointUrl }: S3ArchiveOptions,
  environment: Environment,
): object {
  const credentials = localCredentials(endpointUrl, environment);
  return {
    ...(region !== undefined && { region: checkRegion(region) }),
    ...(endpointUrl !== undefined && { endpoint: endpointUrl, forcePathStyle: true }),
    ...(credentials !== undefined && { credentials }),
    maxAttempts: 3,
    requestHandler: {
      requestTimeout: REQUEST_TIMEOUT_MS,
      // Without it, newer versions of the SDK only warn.
      throwOnRequestTimeout: true,
      connectionTimeout: CONNECTION_TIMEOUT_MS,
    },
  };
}

/** The checksum is of what was meant to be stored: S3 refuses anything else. */
function putInput({ bucket, prefix }: Place, name: string, content: Uint8Array): object {
  return {
    Bucket: bucket,
    Key: prefix + name,
    Body: content,
    ContentType: "application/x-ndjson",
    ContentEncoding: "gzip",
    ChecksumAlgorithm: "SHA256",
    ChecksumSHA256: createHash("sha256").update(content).digest("base64"),
  };
}

/** What S3 and similar stores answer when they have no room. */
const FULL: ReadonlySet<string> = new Set([
  "QuotaExceeded",
  "QuotaExceededException",
  "InsufficientStorage",
  "StorageFull",
  "XMinioStorageFull",
]);

function s3Error({ url, bucket, prefix }: Place, error: unknown): InfrastructureError {
  const { name = "", $metadata } = error as {
    readonly name?: string;
    readonly $metadata?: { readonly httpStatusCode?: number };
  };
  const status = $metadata?.httpStatusCode;
  if (name === "NoSuchBucket")
    return new InfrastructureNotFoundError(
      `The bucket ${bucket} of the archive does not exist: create it, or correct ${url}.`,
      { cause: error },
    );
  if (status === 403)
    return new PermissionDenied(
      `S3 denied access to the archive ${url} (${name}): allow s3:PutObject on arn:aws:s3:::${bucket}/${prefix}*.`,
      { cause: error },
    );
  return status === 507 || FULL.has(name)
    ? buildArchiveFullError(url, error)
    : buildArchiveUnavailableError(url, error);
}

/** The part of the SDK's package that is used. */
interface S3Sdk {
  readonly S3Client: new (configuration: object) => S3ArchiveClient;
  readonly PutObjectCommand: new (input: object) => object;
}

/** Loads the optional peer, or throws an error that says how to install it. */
async function loadS3(): Promise<S3Sdk> {
  try {
    return (await import("@aws-sdk/client-s3")) as unknown as S3Sdk;
  } catch (error) {
    throw buildMissingClientError("An archive in S3", "client-s3", "archive to a folder", error);
  }
}
