import { DynamoDB } from "@aws-sdk/client-dynamodb";
import { leanTransport, type DynamoTransport } from "zae-limiter/dynamodb";

const REGION = "us-east-1";

/**
 * A client as ours is configured: one attempt, connections kept alive, the middleware stack built
 * once.
 */
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

/** The lean transport, which its opener closes. */
export async function openLeanTransport(endpointUrl: string): Promise<DynamoTransport> {
  return leanTransport({ endpointUrl, region: REGION });
}
