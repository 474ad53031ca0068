import type { IncomingMessage } from "node:http";
import { parsedForm } from "./query-protocol.ts";

/** One request, as the service that it is meant for sees it. */
export interface AwsCall {
  /** As signatures name it: `cloudformation`, `monitoring` for CloudWatch. */
  readonly service: string;
  /** Such as `CreateChangeSet`. */
  readonly action: string;
  readonly region: string;
  readonly input: AwsInput;
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Counts the requests, from 1. */
  readonly sequence: number;
}

/** The input of an action: JSON, or what a form says. */
export type AwsInput = Readonly<Record<string, unknown>>;

/** What a service answers: a value that its protocol writes down, or bytes. */
export interface AwsReply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: object | Uint8Array;
}

/** An error as a service returns it. */
export class AwsError extends Error {
  readonly awsCode: string;
  readonly status: number;

  constructor(awsCode: string, message: string, status = 400) {
    super(message);
    this.awsCode = awsCode;
    this.status = status;
  }
}

/** The error that CloudFormation returns for anything that is wrong with a request. */
export function validationError(message: string): AwsError {
  return new AwsError("ValidationError", message);
}

/** Reads a request. Its signature says which service it is meant for. */
export function toCall(incoming: IncomingMessage, body: Buffer, sequence: number): AwsCall {
  const headers = Object.fromEntries(
    Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]),
  );
  const url = new URL(incoming.url ?? "/", "http://127.0.0.1");
  const method = incoming.method ?? "GET";
  const [, region = "", service = ""] =
    /Credential=[^/]+\/\d+\/([^/]+)\/([^/]+)\/aws4_request/.exec(headers["authorization"] ?? "") ??
    [];
  const call = { service, region, method, url, headers, body, sequence };
  return { ...call, ...getAction(call) };
}

function getAction(call: Omit<AwsCall, "action" | "input">): Pick<AwsCall, "action" | "input"> {
  const { service, method, url, headers, body } = call;
  if (service === "s3") return { action: s3Action(method, url), input: {} };
  const target = headers["x-amz-target"];
  if (target !== undefined)
    return {
      action: target.split(".").at(-1)!,
      input: body.length === 0 ? {} : (JSON.parse(String(body)) as AwsInput),
    };
  const form = parsedForm(new URLSearchParams(String(body)));
  return { action: form["Action"] as string, input: form };
}

function s3Action(method: string, { pathname, searchParams }: URL): string {
  const isObject = pathname.split("/").filter(Boolean).length > 1;
  const verb = { GET: "Get", PUT: "Put", HEAD: "Head", DELETE: "Delete" }[method] ?? method;
  if (isObject) return `${verb}Object`;
  if (searchParams.has("publicAccessBlock")) return `${verb}PublicAccessBlock`;
  if (searchParams.has("encryption")) return `${verb}BucketEncryption`;
  return method === "PUT" ? "CreateBucket" : `${verb}Bucket`;
}
