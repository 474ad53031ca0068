import { getAtt, type Resources } from "../cloudformation/template.ts";
import { functionResources } from "./functions.ts";
import { TABLE_NAME } from "./table.ts";

/** As long as Lambda allows: ten thousand entities are as many transactions, one by one. */
const TIMEOUT_SECONDS = 900;

/**
 * The function that applies limits which templates declare as `Custom::ZaeLimiterLimits`. It
 * reserves no concurrency: of two concurrent applies, one stops with an error to its caller.
 */
export function provisionerResources(): Resources {
  return functionResources("Provisioner", {
    Description: "Applies declared limits to the table of zae-limiter.",
    Role: getAtt("ProvisionerRole", "Arn"),
    MemorySize: 256,
    Timeout: TIMEOUT_SECONDS,
    Environment: { Variables: { TABLE_NAME } },
  });
}
