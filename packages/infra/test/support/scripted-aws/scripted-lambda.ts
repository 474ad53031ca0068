import { createHash } from "node:crypto";
import { AwsError, type AwsCall, type AwsReply } from "./aws-call.ts";

/** A function; a test may change anything about it. */
export interface ScriptedFunction {
  /** As `GetFunctionConfiguration` returns it. */
  configuration: Record<string, unknown>;
  /** Where its code came from. */
  code: { bucket?: string; key?: string; zip?: Uint8Array };
  tags: Record<string, string>;
  reservedConcurrency?: number;
}

/** An event source mapping, as `GetEventSourceMapping` returns it. */
export interface ScriptedMapping extends Record<string, unknown> {
  UUID: string;
  FunctionArn: string;
  EventSourceArn: string;
  State: string;
}

/** Lambda: functions and event sources that stacks make, and that a test may change. */
export class ScriptedLambda {
  /** By name. */
  readonly functions = new Map<string, ScriptedFunction>();
  /** By UUID. */
  readonly mappings = new Map<string, ScriptedMapping>();
  readonly #account: string;

  constructor(account: string) {
    this.#account = account;
  }

  arnOf(name: string, region: string): string {
    return `arn:aws:lambda:${region}:${this.#account}:function:${name}`;
  }

  answer(call: AwsCall): AwsReply {
    const part = decodeURIComponent(call.url.pathname.split("/")[3] ?? "");
    switch (call.action) {
      case "GetFunction": {
        const found = this.#function(part);
        return json({
          Configuration: found.configuration,
          Code: { RepositoryType: "S3", Location: "https://example.com/code.zip" },
          Tags: found.tags,
          ...(found.reservedConcurrency !== undefined && {
            Concurrency: { ReservedConcurrentExecutions: found.reservedConcurrency },
          }),
        });
      }
      case "GetFunctionConfiguration":
        return json(this.#function(part).configuration);
      case "GetFunctionConcurrency":
        return json({
          ReservedConcurrentExecutions: this.#function(part).reservedConcurrency,
        });
      case "ListFunctions":
        return json({
          Functions: [...this.functions.values()].map(({ configuration }) => configuration),
        });
      case "UpdateFunctionCode":
        return json(this.#updateCode(this.#function(part), call));
      case "ListEventSourceMappings": {
        const wanted = call.url.searchParams.get("FunctionName") ?? "";
        const ofFunction = [...this.mappings.values()].filter(
          ({ FunctionArn }) => FunctionArn === wanted || FunctionArn.endsWith(`:${wanted}`),
        );
        return json({ EventSourceMappings: ofFunction });
      }
      case "GetEventSourceMapping": {
        const mapping = this.mappings.get(part);
        if (mapping === undefined) throw notFound(`event source mapping ${part}`);
        return json(mapping);
      }
      case "ListTags": {
        const arn = decodeURIComponent(call.url.pathname.split("/").slice(3).join("/"));
        return json({ Tags: this.#function(arn).tags });
      }
      default:
        throw new AwsError("UnknownOperationException", `No action ${call.action}.`, 404);
    }
  }

  #function(nameOrArn: string): ScriptedFunction {
    const found = this.functions.get(nameOrArn.split(":").at(-1)!);
    if (found === undefined) throw notFound(`function ${nameOrArn}`);
    return found;
  }

  #updateCode(found: ScriptedFunction, { input }: AwsCall): object {
    const { S3Bucket, S3Key, ZipFile } = input as Record<string, string | undefined>;
    found.code =
      ZipFile === undefined
        ? { bucket: S3Bucket!, key: S3Key! }
        : { zip: Buffer.from(ZipFile, "base64") };
    found.configuration["CodeSha256"] = createHash("sha256")
      .update(ZipFile ?? `${S3Bucket}/${S3Key}`)
      .digest("base64");
    return found.configuration;
  }
}

function notFound(what: string): AwsError {
  return new AwsError("ResourceNotFoundException", `There is no ${what}.`, 404);
}

function json(body: object): AwsReply {
  return { headers: { "content-type": "application/json" }, body };
}
