import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Limit } from "zae-limiter";
import { DynamoRepository, leanTransport, type DynamoTransport } from "zae-limiter/dynamodb";
import { expect } from "vitest";
import { freshTableName } from "../../../limiter/test/support/engine.ts";
import {
  startFaultProxy,
  type Fault,
  type FaultProxy,
  type ProxiedRequest,
} from "../../../limiter/test/support/fault-proxy.ts";
import { bundleFunction } from "../../../../tools/lambda.mjs";
import { AnswerAddress } from "./answer-address.ts";
import { FunctionProcess } from "./function-process.ts";

/** An answer to CloudFormation. */
export type Answer = Readonly<Record<string, unknown>> & { readonly PhysicalResourceId: string };

const CREDENTIALS = { accessKeyId: "local", secretAccessKey: "local" };

export const STACK_ID = "arn:aws:cloudformation:eu-west-1:123456789012:stack/app/0a1b2c";

/** The result of a function that has answered CloudFormation. */
export const DONE = { result: null };

/** A table behind a fault proxy, the bundle of the provisioner, and an address for answers. */
export class ProvisionerWorld {
  readonly tableName = freshTableName();
  readonly address = new AnswerAddress();
  readonly #folder = mkdtempSync(join(tmpdir(), "bundle-"));
  readonly bundle = join(this.#folder, "index.mjs");
  #responseUrl!: string;
  #transport!: DynamoTransport;
  proxy!: FaultProxy;
  table!: DynamoRepository;

  async start(endpointUrl: string): Promise<void> {
    [, this.#responseUrl, this.#transport, this.proxy] = await Promise.all([
      bundleFunction("provisioner", this.bundle),
      this.address.listen(),
      leanTransport({ endpointUrl, credentials: CREDENTIALS }),
      startFaultProxy(endpointUrl),
    ]);
    this.table = await DynamoRepository.open("default", {
      stack: this.tableName,
      transport: this.#transport,
      provisioning: "table",
      configCacheTtlMs: 0,
    });
  }

  async stop(): Promise<void> {
    rmSync(this.#folder, { recursive: true });
    await this.table?.close();
    this.#transport?.close();
    await this.proxy?.stop();
    await this.address.stop();
  }

  startFunction(node: string): Promise<FunctionProcess> {
    return FunctionProcess.start({
      node,
      bundle: this.bundle,
      environment: {
        TABLE_NAME: this.tableName,
        AWS_REGION: "us-east-1",
        AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
        AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
        AWS_ENDPOINT_URL_DYNAMODB: this.proxy.endpointUrl,
      },
    });
  }

  /** An event of CloudFormation; scalars are strings. */
  event(RequestType: string, fields: Readonly<Record<string, unknown>>): object {
    return {
      RequestType,
      ResponseURL: this.#responseUrl,
      StackId: STACK_ID,
      RequestId: `request-${RequestType}`,
      ResourceType: "Custom::ZaeLimiterLimits",
      LogicalResourceId: "Limits",
      ...fields,
    };
  }

  /** Sends an event to a function, and returns the answer that CloudFormation got. */
  async answerTo(fn: FunctionProcess, sent: object, timeoutMs?: number): Promise<Answer> {
    expect(await fn.invoke(sent, timeoutMs)).toEqual(DONE);
    const [answer, ...more] = this.address.take();
    expect(more).toEqual([]);
    return answer!.body as Answer;
  }

  /** The texts of the limits of a namespace, by resource. */
  async stored(namespace: string): Promise<Readonly<Record<string, readonly string[]>>> {
    const repository = await this.table.namespace(namespace);
    const found: Record<string, readonly string[]> = {};
    for (const resource of await repository.listResourcesWithDefaults()) {
      const limits = await repository.getResourceDefaults(resource);
      found[resource] = limits.map((limit) => Limit.format(limit));
    }
    return found;
  }

  /** Lets the writes of a resource's limits fail while something is done. */
  async failing<Result>(
    resource: string,
    fault: Fault,
    work: () => Promise<Result>,
  ): Promise<Result> {
    this.proxy.decide = (request) => (isWriteOf(request, resource) ? fault : undefined);
    try {
      return await work();
    } finally {
      this.proxy.decide = () => undefined;
    }
  }
}

const WRITES = /^(Put|Update|Delete|BatchWrite|TransactWrite)/;

/** The operations among requests that write. */
export function writesIn(requests: readonly ProxiedRequest[]): readonly string[] {
  return requests.map(({ operation }) => operation).filter((operation) => WRITES.test(operation));
}

/** Whether a request writes the defaults of a resource. */
export function isWriteOf({ operation, input }: ProxiedRequest, resource: string): boolean {
  return (
    operation === "TransactWriteItems" &&
    JSON.stringify(input["TransactItems"]).includes(`/RESOURCE#${resource}"`)
  );
}
