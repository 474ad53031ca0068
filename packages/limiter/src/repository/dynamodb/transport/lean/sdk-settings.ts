import { ValidationError } from "../../../../core/errors.ts";
import { loadSdk } from "../sdk-transport.ts";
import type { AwsCredentials } from "../local-engine.ts";

/**
 * The settings that the SDK finds in the environment, in files, in containers and on the network.
 */
export interface SdkSettings {
  readonly region: () => Promise<string>;
  readonly credentials: (options?: { readonly forceRefresh?: boolean }) => Promise<AwsCredentials>;
}

/**
 * The settings of a file that ask for other addresses than the ordinary ones. Older versions of the
 * SDK do not have all of them.
 */
interface AddressSettings {
  readonly useFipsEndpoint?: () => Promise<boolean>;
  readonly useDualstackEndpoint?: () => Promise<boolean>;
  readonly accountIdEndpointMode?: () => Promise<string>;
  readonly serviceConfiguredEndpoint?: () => Promise<string | undefined>;
}

/**
 * Lets the SDK find the settings. Throws when a profile asks for other addresses than the ordinary
 * ones and no `endpointUrl` is given: only the SDK reads those files, and ignoring the setting
 * would silently break a compliance requirement.
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
  const setting =
    endpointUrl === undefined ? await otherAddress(config as AddressSettings) : undefined;
  if (setting !== undefined)
    throw new ValidationError(
      "endpointUrl",
      undefined,
      `must be passed, because the profile has ${setting}`,
    );
  return config;
}

async function otherAddress(config: AddressSettings): Promise<string | undefined> {
  if (await config.useFipsEndpoint?.()) return "use_fips_endpoint";
  if (await config.useDualstackEndpoint?.()) return "use_dualstack_endpoint";
  if ((await config.accountIdEndpointMode?.()) === "required") return "account_id_endpoint_mode";
  return (await config.serviceConfiguredEndpoint?.()) === undefined ? undefined : "endpoint_url";
}
