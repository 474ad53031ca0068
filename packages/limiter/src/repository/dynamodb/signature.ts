import { createHmac, hash } from "node:crypto";

/** What requests are signed with. */
export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Comes with credentials that are lent for a time. */
  readonly sessionToken?: string | undefined;
  /** When they stop being valid. */
  readonly expiration?: Date | undefined;
}

/** What all requests of one transport have in common. */
export interface SigningScope {
  /** As in the `Host` header: with the port unless it is the protocol's own. */
  readonly host: string;
  /** As it is sent. */
  readonly path: string;
  readonly region: string;
}

/** What differs from one request to the next. */
export interface SignableRequest {
  readonly credentials: AwsCredentials;
  /** The value of `x-amz-target`. */
  readonly target: string;
  readonly body: string;
  readonly nowMs: number;
}

/** The headers that a signature adds. */
export interface Signature {
  /** The value of `x-amz-date`. */
  readonly date: string;
  readonly authorization: string;
}

/** The one content type of DynamoDB's protocol; it is part of every signature. */
export const CONTENT_TYPE = "application/x-amz-json-1.0";

const ALGORITHM = "AWS4-HMAC-SHA256";
const SERVICE = "dynamodb";
const SIGNED_HEADERS = "content-type;host;x-amz-date;x-amz-target";
const SIGNED_HEADERS_WITH_TOKEN = "content-type;host;x-amz-date;x-amz-security-token;x-amz-target";

/**
 * AWS Signature Version 4 for the one shape of request that DynamoDB knows: a POST with a JSON body and no query. Everything that stays the
 * same is put together once, and the key that is derived from the secret is kept for as long as day and secret stay the same: the
 * derivation is four of the seven hashes of a signature.
 */
export class Signer {
  readonly #region: string;
  readonly #requestHead: string;
  #key: SigningKey | undefined;

  constructor({ host, path, region }: SigningScope) {
    this.#region = region;
    this.#requestHead = `POST\n${canonicalPath(path)}\n\ncontent-type:${CONTENT_TYPE}\nhost:${host}\nx-amz-date:`;
  }

  /** The signature of a request that is sent at that time. */
  sign({ credentials, target, body, nowMs }: SignableRequest): Signature {
    const date = amzDate(nowMs);
    const day = date.slice(0, 8);
    const token = credentials.sessionToken;
    const signedHeaders = token === undefined ? SIGNED_HEADERS : SIGNED_HEADERS_WITH_TOKEN;
    const tokenLine = token === undefined ? "" : `x-amz-security-token:${token}\n`;
    const request = `${this.#requestHead}${date}\n${tokenLine}x-amz-target:${target}\n\n${signedHeaders}\n${sha256(body)}`;
    const scope = `${day}/${this.#region}/${SERVICE}/aws4_request`;
    const signature = createHmac("sha256", this.#keyOf(day, credentials.secretAccessKey))
      .update(`${ALGORITHM}\n${date}\n${scope}\n${sha256(request)}`)
      .digest("hex");
    return {
      date,
      authorization: `${ALGORITHM} Credential=${credentials.accessKeyId}/${scope}, SignedHeaders=${signedHeaders}, Signature=${signature}`,
    };
  }

  #keyOf(day: string, secret: string): Buffer {
    if (this.#key?.day === day && this.#key.secret === secret) return this.#key.key;
    const key = hmac(hmac(hmac(hmac(`AWS4${secret}`, day), this.#region), SERVICE), "aws4_request");
    this.#key = { day, secret, key };
    return key;
  }
}

interface SigningKey {
  readonly day: string;
  readonly secret: string;
  readonly key: Buffer;
}

/** `20261115T093000Z`. */
function amzDate(nowMs: number): string {
  return `${new Date(nowMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, "")}Z`;
}

/** Empty parts count as one slash, and every part is encoded once more than it is sent; only S3 signs a path as it is. */
function canonicalPath(path: string): string {
  return path.replaceAll(/\/+/g, "/").split("/").map(encoded).join("/");
}

/** As RFC 3986 has it, which reserves five characters more than `encodeURIComponent` does. */
function encoded(part: string): string {
  return encodeURIComponent(part).replaceAll(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
}

function sha256(text: string): string {
  return hash("sha256", text, "hex");
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
