import { setTimeout as sleep } from "node:timers/promises";
import { DynamoRepository, leanTransport } from "zae-limiter/dynamodb";
import { MemoryRepository } from "zae-limiter/memory";
import { tableSettings, type Environment } from "../runtime/environment.ts";
import type { LambdaContext } from "../runtime/lambda-context.ts";
import { printLine } from "../runtime/log-line.ts";
import { putToSignedUrl } from "./delivery.ts";
import type { DirectAnswer } from "./direct.ts";
import { invoke, type InvocationContext } from "./invocation.ts";
import type { Provisioning } from "./resource.ts";

/*
 * The entry point of the function. It checks its environment at the start, but an error does not
 * end it, because CloudFormation waits for an answer. The transport is created once, while Lambda
 * gives the process a whole CPU.
 */
const [started] = await Promise.allSettled([openProvisioning(process.env)]);

const context: InvocationContext = {
  start: () => {
    if (started.status === "fulfilled") return started.value;
    throw started.reason;
  },
  sleep: pause,
  print: printLine,
  put: putToSignedUrl,
};

/** The function that Lambda calls. */
export function handler(event: unknown, lambda: LambdaContext): Promise<DirectAnswer | undefined> {
  return invoke(event, context, lambda);
}

async function openProvisioning(environment: Environment): Promise<Provisioning> {
  const { tableName, region, dynamodbUrl } = tableSettings(environment);
  const transport = await leanTransport({
    region,
    ...(dynamodbUrl !== undefined && { endpointUrl: dynamodbUrl }),
  });
  return {
    tableName,
    open: async (namespace, { create }) => {
      const repository = await DynamoRepository.open(namespace, {
        stack: tableName,
        transport,
        // It is one itself, and a deployment invokes it before it records its version.
        lambda: "ignore",
        // With a transport of its own, "stack" creates no table, and registers the namespace.
        ...(create ? { provisioning: "stack" } : { create: false }),
      });
      if (repository.namespaceId !== "") return repository;
      await repository.close();
      return new MemoryRepository({ namespace });
    },
    sleep: pause,
  };
}

function pause(ms: number, options?: { readonly signal?: AbortSignal }): Promise<unknown> {
  return sleep(ms, undefined, options);
}
