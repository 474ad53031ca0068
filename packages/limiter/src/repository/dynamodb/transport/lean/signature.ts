import { createHmac, hash } from "node:crypto";
import type { AwsCredentials } from "../local-engine.ts";

/** What all requests of one transport have in common. */
export interface SigningScope {
  /** The value of the `Host` header: with the port, unless it is the default of the protocol. */
  readonly host: string;
  /** The path as it is sent. */
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
 * AWS Signature Version 4 for the one shape of request that DynamoDB knows: a POST with a JSON body
 * and no query. A signature is four hashes; everything else that goes into it stays the same for a
 * second, and is assembled once a second.
 */
export class Signer {
  readonly #region: string;
  readonly #requestHead: string;
  #key: SigningKey | undefined;
  #stamp: Stamp | undefined;

  constructor({ host, path, region }: SigningScope) {
    this.#region = region;
    this.#requestHead = `POST\n${canonicalPath(path)}\n\ncontent-type:${CONTENT_TYPE}\nhost:${host}\nx-amz-date:`;
  }

  /** The signature of a request that is sent at that time. */
  sign({ credentials, target, body, nowMs }: SignableRequest): Signature {
    const { date, requestStart, requestEnd, authorization, message, outer } = this.#getStamp(
      credentials,
      Math.floor(nowMs / 1000),
    );
    const requestHash = sha256(`${requestStart}${target}${requestEnd}${sha256(body)}`);
    message.write(requestHash, message.length - HEX_LENGTH, "latin1");
    outer.write(sha256(message, "binary"), BLOCK_LENGTH, "binary");
    return { date, authorization: authorization + sha256(outer) };
  }

  #getStamp(credentials: AwsCredentials, second: number): Stamp {
    if (this.#stamp?.second === second && this.#stamp.credentials === credentials)
      return this.#stamp;
    const { accessKeyId, secretAccessKey, sessionToken } = credentials;
    const date = amzDate(second * 1000);
    const day = date.slice(0, 8);
    const scope = `${day}/${this.#region}/${SERVICE}/aws4_request`;
    const tokenLine = sessionToken ? `x-amz-security-token:${sessionToken}\n` : "";
    const signedHeaders = sessionToken ? SIGNED_HEADERS_WITH_TOKEN : SIGNED_HEADERS;
    const { inner, outer } = this.#getKey(day, secretAccessKey);
    this.#stamp = {
      second,
      credentials,
      date,
      requestStart: `${this.#requestHead}${date}\n${tokenLine}x-amz-target:`,
      requestEnd: `\n\n${signedHeaders}\n`,
      authorization: `${ALGORITHM} Credential=${accessKeyId}/${scope}, SignedHeaders=${signedHeaders}, Signature=`,
      message: Buffer.concat([
        inner,
        Buffer.from(`${ALGORITHM}\n${date}\n${scope}\n`),
        Buffer.alloc(HEX_LENGTH),
      ]),
      outer,
    };
    return this.#stamp;
  }

  #getKey(day: string, secret: string): SigningKey {
    if (this.#key?.day === day && this.#key.secret === secret) return this.#key;
    const key = hmac(hmac(hmac(hmac(`AWS4${secret}`, day), this.#region), SERVICE), "aws4_request");
    const block = Buffer.concat([key], BLOCK_LENGTH);
    const inner = block.map((byte) => byte ^ 0x36);
    this.#key = {
      day,
      secret,
      inner,
      outer: Buffer.concat([block.map((byte) => byte ^ 0x5c)], BLOCK_LENGTH + key.length),
    };
    return this.#key;
  }
}

/**
 * The key of a day, padded for the two hashes of an HMAC (RFC 2104), which are computed separately:
 * making and collecting one of Node's `Hmac` objects costs more than all hashes of a signature (7
 * µs of 88 for a request and its answer).
 */
interface SigningKey {
  readonly day: string;
  readonly secret: string;
  readonly inner: Uint8Array;
  /** The outer block, followed by room for the inner hash. */
  readonly outer: Buffer;
}

/** What the requests of one second have in common. */
interface Stamp {
  readonly second: number;
  readonly credentials: AwsCredentials;
  readonly date: string;
  /** The canonical request before the target, and between it and the hash of the body. */
  readonly requestStart: string;
  readonly requestEnd: string;
  /** The header's value up to the signature. */
  readonly authorization: string;
  /** The inner key block and the string to sign, whose end is the hash of the canonical request. */
  readonly message: Buffer;
  readonly outer: Buffer;
}

/** The block of SHA-256 in bytes, and its hash in hexadecimal digits. */
const BLOCK_LENGTH = 64;
const HEX_LENGTH = 64;

/** `20261115T093000Z`. */
function amzDate(nowMs: number): string {
  return `${new Date(nowMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, "")}Z`;
}

/**
 * Empty parts count as one slash, and every part is encoded once more than it is sent; only S3
 * signs a path as it is.
 */
function canonicalPath(path: string): string {
  return path.replaceAll(/\/+/g, "/").split("/").map(encodePart).join("/");
}

/** As RFC 3986 has it, which reserves five characters more than `encodeURIComponent` does. */
function encodePart(part: string): string {
  return encodeURIComponent(part).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function sha256(content: string | Buffer, encoding: "hex" | "binary" = "hex"): string {
  return hash("sha256", content, encoding);
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
