import { ValidationError } from "../../../../core/errors.ts";
import { loadSdk } from "../sdk-transport.ts";
import type { AwsCredentials } from "../local-engine.ts";

/**
 * What the SDK finds out by itself, in the environment, in files, in containers and on the network.
 */
export interface SdkSettings {
  readonly region: () => Promise<string>;
  readonly credentials: (options?: { readonly forceRefresh?: boolean }) => Promise<AwsCredentials>;
}

/**
 * Whether a file asks for other addresses than the ordinary ones. Older versions of the SDK do not
 * know all of them.
 */
interface AddressSettings {
  readonly useFipsEndpoint?: () => Promise<boolean>;
  readonly useDualstackEndpoint?: () => Promise<boolean>;
  readonly accountIdEndpointMode?: () => Promise<string>;
  readonly serviceConfiguredEndpoint?: () => Promise<string | undefined>;
}

/**
 * Lets the SDK look. Without an `endpointUrl` it must not find a wish for other addresses than the
 * ordinary ones: nothing but the SDK reads the files that it may be in, and to pass over it would
 * break a promise that somebody made.
 */
export async function settingsFromSdk({
  region,
  endpointUrl,
}: {
  readonly region?: string;
  readonly endpointUrl: string | undefined;
}): Promise<SdkSettings> {
  const { DynamoDBClient } = await loadSdk();
  const { config } = new DynamoDBClient(region === undefined ? {} : { region }) as unknown as {
    readonly config: SdkSettings;
  };
  const wish =
    endpointUrl === undefined ? await otherAddress(config as AddressSettings) : undefined;
  if (wish !== undefined)
    throw new ValidationError(
      "endpointUrl",
      undefined,
      `must be passed, because the profile has ${wish}`,
    );
  return config;
}

async function otherAddress(config: AddressSettings): Promise<string | undefined> {
  if (await config.useFipsEndpoint?.()) return "use_fips_endpoint";
  if (await config.useDualstackEndpoint?.()) return "use_dualstack_endpoint";
  if ((await config.accountIdEndpointMode?.()) === "required") return "account_id_endpoint_mode";
  return (await config.serviceConfiguredEndpoint?.()) === undefined ? undefined : "endpoint_url";
}
