import { DynamoDB } from "@aws-sdk/client-dynamodb";
import { isLoopback, LOCAL_REGION } from "#limiter/repository/dynamodb/transport/local-engine";
import { clientConfiguration } from "#limiter/repository/dynamodb/transport/sdk-transport";
import { leanTransport, type ObservedTransport } from "zae-limiter/dynamodb";

/** Where the tables are: in a region of AWS, or behind an endpoint. */
export interface Place {
  readonly region?: string | undefined;
  readonly endpointUrl?: string | undefined;
}

/**
 * A client as ours is configured: one attempt, connections kept alive, the middleware stack built
 * once, and invented credentials for nothing but an engine on this machine.
 */
export function openSdkClient(place: Place): DynamoDB {
  const { region, endpointUrl } = withRegion(place);
  return new DynamoDB(clientConfiguration({ region, endpointUrl }, process.env));
}

/** The lean transport, which its opener closes. */
export async function openLeanTransport(place: Place): Promise<ObservedTransport> {
  return leanTransport(withRegion(place));
}

/** An engine on this machine needs some region; for the others the environment decides. */
function withRegion({ region, endpointUrl }: Place): { region?: string; endpointUrl?: string } {
  const known = region ?? (isLoopback(endpointUrl) ? LOCAL_REGION : undefined);
  return {
    ...(known !== undefined && { region: known }),
    ...(endpointUrl !== undefined && { endpointUrl }),
  };
}
