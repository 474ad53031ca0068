import { AwsError, type AwsCall, type AwsReply } from "./aws-call.ts";

/** A bucket and what is in it. */
export interface ScriptedBucket {
  readonly owner: string;
  readonly region: string;
  readonly objects: Map<string, Uint8Array>;
  /** Settings that were made: `publicAccessBlock`, `encryption`. */
  readonly settings: Map<string, string>;
  /** Whether other accounts may use it. */
  readonly isShared: boolean;
}

/** S3: names are global, and one bucket belongs to one account and one region. */
export class ScriptedS3 {
  readonly buckets = new Map<string, ScriptedBucket>();
  readonly #account: string;

  constructor(account: string) {
    this.#account = account;
  }

  /** Makes a bucket, of this account unless the test says of whom. */
  create(
    name: string,
    { region = "eu-west-1", owner = this.#account, isShared = false } = {},
  ): ScriptedBucket {
    const bucket = { owner, region, isShared, objects: new Map(), settings: new Map() };
    this.buckets.set(name, bucket);
    return bucket;
  }

  answer(call: AwsCall): AwsReply {
    const [bucketName = "", ...rest] = decodeURIComponent(call.url.pathname).slice(1).split("/");
    const key = rest.join("/");
    if (call.action === "CreateBucket") return this.#createBucket(bucketName, call);
    const bucket = this.buckets.get(bucketName);
    if (bucket === undefined)
      throw new AwsError("NoSuchBucket", `The bucket ${bucketName} does not exist`, 404);
    this.#checkAccess(bucket, call);
    return answer(call, bucket, key);
  }

  #createBucket(name: string, call: AwsCall): AwsReply {
    const existing = this.buckets.get(name);
    if (existing !== undefined)
      throw existing.owner === this.#account
        ? new AwsError("BucketAlreadyOwnedByYou", "You own this bucket already.", 409)
        : new AwsError("BucketAlreadyExists", "The bucket name is not available.", 409);
    const wanted = /<LocationConstraint>([^<]*)</.exec(String(call.body))?.[1];
    // us-east-1 is the one region that must not be named.
    if ((wanted ?? "us-east-1") !== call.region)
      throw new AwsError(
        "IllegalLocationConstraintException",
        `The ${wanted ?? "unspecified"} location constraint is incompatible with ${call.region}.`,
      );
    this.create(name, { region: call.region });
    return empty();
  }

  #checkAccess({ owner, region, isShared }: ScriptedBucket, call: AwsCall): void {
    const expected = call.headers["x-amz-expected-bucket-owner"];
    const isOpen = owner === this.#account || isShared;
    if (!isOpen || (expected !== undefined && expected !== owner))
      throw new AwsError("AccessDenied", "Access Denied", 403);
    if (region !== call.region)
      throw new AwsError("PermanentRedirect", `The bucket is in ${region}.`, 301);
  }
}

function answer(call: AwsCall, bucket: ScriptedBucket, key: string): AwsReply {
  const { action, body } = call;
  switch (action) {
    case "HeadBucket":
      return { ...empty(), headers: { "x-amz-bucket-region": bucket.region } };
    case "PutPublicAccessBlock":
    case "PutBucketEncryption":
      bucket.settings.set([...call.url.searchParams.keys()][0]!, String(body));
      return empty();
    case "PutObject":
      bucket.objects.set(key, plainBody(call));
      return empty();
    case "HeadObject":
      if (!bucket.objects.has(key))
        throw new AwsError("NoSuchKey", `The key ${key} does not exist`, 404);
      return empty();
    default:
      throw new AwsError("NotImplemented", `No action ${action}.`, 501);
  }
}

/** Without the frames of a body that was sent in chunks with a checksum behind them. */
function plainBody({ headers, body }: AwsCall): Uint8Array {
  if (headers["content-encoding"]?.includes("aws-chunked") !== true) return body;
  const parts: Buffer[] = [];
  for (let position = 0; position < body.length;) {
    const end = body.indexOf("\r\n", position);
    const size = Number.parseInt(body.subarray(position, end).toString(), 16);
    if (!(size > 0)) break;
    parts.push(body.subarray(end + 2, end + 2 + size));
    position = end + 2 + size + 2;
  }
  return Buffer.concat(parts);
}

function empty(): AwsReply {
  return { body: new Uint8Array() };
}
