import { withClients } from "../aws/clients.ts";
import { resolvePlace, type StackPlace } from "../aws/place.ts";
import { readStack } from "./stack-state.ts";

/**
 * Whether there is a stack of this name. An address other than AWS's that does not speak
 * CloudFormation, such as that of a local DynamoDB engine, has none.
 *
 * @example const isDeployed = await stackExists({ stack: "limits", region: "eu-west-1" });
 */
export async function stackExists(place: StackPlace = {}): Promise<boolean> {
  const checked = resolvePlace(place);
  try {
    return await withClients(checked, async (clients) => (await readStack(clients)) !== undefined);
  } catch (error) {
    place.signal?.throwIfAborted();
    if (checked.endpointUrl === undefined) throw error;
    return false;
  }
}
