import { DynamoDB } from "@aws-sdk/client-dynamodb";
import * as backend from "zae-limiter/dynamodb";
import type { DynamoTransport } from "zae-limiter/dynamodb";

type OpenLean = (options: { readonly endpointUrl: string; readonly region: string }) => DynamoTransport | Promise<DynamoTransport>;

const REGION = "us-east-1";

/** A client as ours is configured: one attempt, connections kept alive, the middleware stack built once. */
export function openSdkClient(endpointUrl: string): DynamoDB {
  const agent = { keepAlive: true, maxSockets: 128 };
  return new DynamoDB({
    endpoint: endpointUrl,
    region: REGION,
    credentials: { accessKeyId: "local", secretAccessKey: "local" },
    maxAttempts: 1,
    cacheMiddleware: true,
    requestHandler: { httpAgent: agent, httpsAgent: agent },
  });
}

/** The lean transport, or nothing where the package does not have it. */
export async function openLeanTransport(endpointUrl: string): Promise<DynamoTransport | undefined> {
  const { leanTransport } = backend as unknown as { readonly leanTransport?: OpenLean };
  return leanTransport?.({ endpointUrl, region: REGION });
}
