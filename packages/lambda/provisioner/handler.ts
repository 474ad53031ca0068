import { setTimeout as sleep } from "node:timers/promises";
import { DynamoRepository, leanTransport } from "zae-limiter/dynamodb";
import { MemoryRepository } from "zae-limiter/memory";
import { tableSettings, type TableSettings } from "../runtime/environment.ts";
import type { LambdaContext } from "../runtime/lambda-context.ts";
import { printLine } from "../runtime/log-line.ts";
import { putToSignedUrl } from "./delivery.ts";
import type { DirectAnswer } from "./direct.ts";
import { invoke, type InvocationContext } from "./invocation.ts";

/*
 * The entry of the function. Everything that can be wrong with its environment is wrong when it
 * starts, and the transport is made once, while Lambda gives the process a whole CPU.
 */
const context = await contextOf(tableSettings(process.env));

/** What Lambda calls. */
export function handler(event: unknown, lambda: LambdaContext): Promise<DirectAnswer | undefined> {
  return invoke(event, context, lambda);
}

async function contextOf({
  tableName,
  region,
  dynamodbUrl,
}: TableSettings): Promise<InvocationContext> {
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
        // With a transport of its own, "stack" creates no table, and registers the namespace.
        ...(create ? { provisioning: "stack" } : { create: false }),
      });
      if (repository.namespaceId !== "") return repository;
      await repository.close();
      return new MemoryRepository({ namespace });
    },
    sleep: (ms, options) => sleep(ms, undefined, options),
    print: printLine,
    put: putToSignedUrl,
  };
}
