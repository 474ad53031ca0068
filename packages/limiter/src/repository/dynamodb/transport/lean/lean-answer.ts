import { crc32 } from "node:zlib";
import { withoutStack } from "../../../../core/errors.ts";
import { shortenError } from "../failure.ts";
import { unreadable, type HttpAnswer } from "./lean-http.ts";

/** An error that DynamoDB returned, in the shape that the SDK gives it. */
class ServiceError extends Error {
  readonly $metadata: { readonly httpStatusCode: number };
  /** The item as it was, when a condition failed that asked for it. */
  declare readonly Item?: object;
  declare readonly CancellationReasons?: readonly object[];
  declare readonly ThrottlingReasons?: readonly object[];

  constructor(
    name: string,
    message: string,
    { status, details }: { readonly status: number; readonly details: ErrorDetails },
  ) {
    super(message);
    this.name = name;
    this.$metadata = { httpStatusCode: status };
    if (details.Item !== undefined) this.Item = details.Item;
    if (details.CancellationReasons !== undefined)
      this.CancellationReasons = details.CancellationReasons;
    const throttling = details.ThrottlingReasons ?? details.throttlingReasons;
    if (throttling !== undefined) this.ThrottlingReasons = throttling;
  }
}

/** What an error may carry besides its name. */
interface ErrorDetails {
  readonly Item?: object;
  readonly CancellationReasons?: readonly object[];
  readonly ThrottlingReasons?: readonly object[];
  readonly throttlingReasons?: readonly object[];
}

type Json = Readonly<Record<string, unknown>>;

/** How much of a foreign answer is worth telling. */
const MAX_QUOTE_LENGTH = 200;

/** The output of a call, or the error that it was answered with. */
export function parseOutput(answer: HttpAnswer): object {
  assertIntact(answer);
  if (answer.status < 200 || answer.status > 299) throw toError(answer);
  const output = parseJson(answer.body);
  if (output === undefined)
    throw unreadable(`The answer is not a JSON object: ${quoteBody(answer)}`);
  return output;
}

function toError(answer: HttpAnswer): Error {
  const { status, headers } = answer;
  const body = parseJson(answer.body);
  const type = body?.["__type"] ?? body?.["code"] ?? headers["x-amzn-errortype"];
  // The stack of an answer would show Node's parser, never the caller.
  return withoutStack(() => {
    // A proxy or a load balancer sent this: only its status means anything.
    if (body === undefined || typeof type !== "string")
      return new ServiceError("UnknownError", `HTTP status ${status}: ${quoteBody(answer)}`, {
        status,
        details: {},
      });
    const text = body["message"] ?? body["Message"];
    const { name, message } = shortenError(shortName(type), typeof text === "string" ? text : type);
    return new ServiceError(name, message, { status, details: body });
  });
}

/** The name in `com.amazonaws.dynamodb.v20120810#ThrottlingException:http://…`. */
function shortName(type: string): string {
  return type.slice(type.indexOf("#") + 1).split(":", 1)[0]!;
}

/**
 * Verifies the checksum, which the SDK for JavaScript does not: it costs about a microsecond, and a
 * wrong balance may cost a customer.
 */
function assertIntact({ headers, body }: HttpAnswer): void {
  const expected = headers["x-amz-crc32"];
  if (expected !== undefined && Number(expected) !== crc32(body))
    throw unreadable("The answer has a wrong checksum");
}

function parseJson(body: Buffer): Json | undefined {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Json)
      : undefined;
  } catch {
    return undefined;
  }
}

function quoteBody({ body }: HttpAnswer): string {
  return JSON.stringify(body.subarray(0, MAX_QUOTE_LENGTH).toString("utf8"));
}
