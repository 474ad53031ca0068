import {
  CreateBucketCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  PutBucketEncryptionCommand,
  PutObjectCommand,
  PutPublicAccessBlockCommand,
  type BucketLocationConstraint,
} from "@aws-sdk/client-s3";
import { PermissionDenied, ValidationError } from "zae-limiter";
import { getErrorName, getErrorStatus } from "../aws/aws-errors.ts";
import type { AwsClients } from "../aws/clients.ts";
import { codeKey, type LambdaPackage } from "./lambda-package.ts";

/** The place of the code. */
export interface CodePlace {
  readonly bucket: string;
  /** The account that must own the bucket, so that no other account can replace the code. */
  readonly account: string;
}

/** The name of the account's own bucket, which is used and created if no bucket is named. */
export function defaultCodeBucket(account: string, region: string): string {
  return `zae-limiter-code-${account}-${region}`;
}

/** Throws for a name that no bucket can have. */
export function checkBucketName(name: string): void {
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(name))
    throw new ValidationError(
      "codeBucket",
      name,
      "must be the name of a bucket: 3 to 63 small letters, digits, dots and hyphens",
    );
}

/** Puts the code of functions into its bucket, unless it is there. */
export async function uploadCode(
  clients: AwsClients,
  packages: readonly LambdaPackage[],
  { bucket, account }: CodePlace,
): Promise<void> {
  const { s3, region } = clients;
  const isOurs = bucket === defaultCodeBucket(account, region);
  const owned = { Bucket: bucket, ExpectedBucketOwner: account };
  if (!(await bucketExists(clients, { bucket, account }))) {
    if (!isOurs)
      throw new ValidationError(
        "codeBucket",
        bucket,
        "does not exist; create it, or leave the option out to have one made",
      );
    await createBucket(clients, { bucket, account });
  }
  for (const code of packages) {
    const Key = codeKey(code);
    const found = await clients.callUnless(isAbsent, "s3:GetObject", (options) =>
      s3.send(new HeadObjectCommand({ ...owned, Key }), options),
    );
    if (found === undefined)
      await clients.call("s3:PutObject", (options) =>
        s3.send(new PutObjectCommand({ ...owned, Key, Body: code.content }), options),
      );
  }
}

/** S3 answers 403 instead of 404 to callers that may not list the bucket. */
function isAbsent(error: unknown): boolean {
  const status = getErrorStatus(error);
  return status === 404 || status === 403;
}

async function bucketExists(clients: AwsClients, { bucket, account }: CodePlace): Promise<boolean> {
  const input = { Bucket: bucket, ExpectedBucketOwner: account };
  try {
    await clients.call(
      "s3:ListBucket",
      (options) => clients.s3.send(new HeadBucketCommand(input), options),
      (error) => [301, 400, 403, 404].includes(getErrorStatus(error) ?? 0),
    );
    return true;
  } catch (error) {
    const status = getErrorStatus(error);
    if (status === 404) return false;
    if (status === 301 || status === 400)
      throw new ValidationError(
        "codeBucket",
        bucket,
        `is not in ${clients.region}, and Lambda takes code from its own region only; name one there`,
      );
    if (status === 403)
      throw new PermissionDenied(
        `AWS denied s3:ListBucket on ${bucket}: allow it, or name a bucket of account ${account} with --code-bucket or the option codeBucket.`,
        { cause: error },
      );
    throw error;
  }
}

/** Makes a bucket that is private and encrypted; another process may be doing the same. */
async function createBucket(clients: AwsClients, { bucket, account }: CodePlace): Promise<void> {
  const { s3, region } = clients;
  const input = {
    Bucket: bucket,
    // The one region that must not be named.
    ...(region !== "us-east-1" && {
      CreateBucketConfiguration: { LocationConstraint: region as BucketLocationConstraint },
    }),
  };
  try {
    await clients.call(
      "s3:CreateBucket",
      (options) => s3.send(new CreateBucketCommand(input), options),
      isTaken,
    );
  } catch (error) {
    if (getErrorName(error) === "BucketAlreadyExists")
      throw new ValidationError(
        "codeBucket",
        bucket,
        "belongs to another account; name another bucket with --code-bucket or the option codeBucket",
      );
    if (!isTaken(error)) throw error;
  }
  const owned = { Bucket: bucket, ExpectedBucketOwner: account };
  const PublicAccessBlockConfiguration = {
    BlockPublicAcls: true,
    IgnorePublicAcls: true,
    BlockPublicPolicy: true,
    RestrictPublicBuckets: true,
  };
  await clients.call("s3:PutBucketPublicAccessBlock", (options) =>
    s3.send(new PutPublicAccessBlockCommand({ ...owned, PublicAccessBlockConfiguration }), options),
  );
  const ServerSideEncryptionConfiguration = {
    Rules: [{ ApplyServerSideEncryptionByDefault: { SSEAlgorithm: "AES256" as const } }],
  };
  await clients.call("s3:PutEncryptionConfiguration", (options) =>
    s3.send(
      new PutBucketEncryptionCommand({ ...owned, ServerSideEncryptionConfiguration }),
      options,
    ),
  );
}

function isTaken(error: unknown): boolean {
  return getErrorName(error).startsWith("BucketAlready");
}
