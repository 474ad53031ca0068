import {
  GetFunctionConfigurationCommand,
  type FunctionConfiguration,
} from "@aws-sdk/client-lambda";
import type { AwsClients } from "../aws/clients.ts";
import { LONGEST_WITH_PROVISIONER } from "../options/names.ts";
import { seen, type Service } from "./seen.ts";
import type { FunctionState, Seen } from "./status-model.ts";

/** Lambda, as a service that is looked at. */
export const LAMBDA: Service = {
  name: "Lambda",
  prefix: "lambda",
  isMissing: ({ name }) => name === "ResourceNotFoundException",
};

/** A function, by its name. */
export async function functionState(
  clients: AwsClients,
  name: string,
): Promise<Seen<FunctionState>> {
  const command = new GetFunctionConfigurationCommand({ FunctionName: name });
  return seen(clients, LAMBDA, async (send) =>
    functionOf(
      name,
      await send("GetFunctionConfiguration", (options) => clients.lambda.send(command, options)),
    ),
  );
}

/** The function that applies declared limits; where its name would be too long, there is none. */
export async function provisionerState(clients: AwsClients): Promise<Seen<FunctionState>> {
  const { stack } = clients;
  if (stack.length > LONGEST_WITH_PROVISIONER) return undefined;
  return functionState(clients, `${stack}-limits-provisioner`);
}

function functionOf(name: string, found: FunctionConfiguration): FunctionState {
  const { StateReason, LastUpdateStatus, LastUpdateStatusReason, Runtime, CodeSha256 } = found;
  return {
    name,
    // Functions that are older than these states have none, and work.
    state: found.State ?? "Active",
    ...(StateReason && { stateReason: StateReason }),
    ...(LastUpdateStatus && { lastUpdate: LastUpdateStatus }),
    ...(LastUpdateStatusReason && { lastUpdateReason: LastUpdateStatusReason }),
    ...(Runtime && { runtime: Runtime }),
    ...(CodeSha256 && { codeSha256: CodeSha256 }),
    ...(found.LastModified && { modifiedAt: found.LastModified }),
  };
}
