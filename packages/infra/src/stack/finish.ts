import { VERSION } from "zae-limiter";
import { DynamoRepository, SCHEMA_VERSION, type StackOptions } from "zae-limiter/dynamodb";
import type { AwsClients } from "../aws/clients.ts";
import type { Plan } from "./plan.ts";

/** The inputs of the deployment. */
type Deployed = Pick<Plan, "code"> & { readonly stackOptions?: StackOptions };

/**
 * Writes what a deployment leaves in the table: the version record, the namespace `default`, and
 * the retention that was given. Writes only what differs, so it may be repeated.
 */
export async function finishDeployment(
  { stack, region, endpointUrl }: AwsClients,
  { code, stackOptions = {} }: Deployed,
): Promise<void> {
  const repository = await DynamoRepository.open("default", {
    stack,
    region,
    provisioning: "stack",
    // The record names the Lambda from before the deployment that this finishes.
    lambda: "ignore",
    ...(endpointUrl !== undefined && { endpointUrl }),
  });
  try {
    const lambdaVersion = code === undefined ? undefined : VERSION;
    const record = await repository.getVersionRecord();
    if (record === undefined || (code !== undefined && record.lambdaVersion !== lambdaVersion))
      await repository.setVersionRecord({
        schemaVersion: record?.schemaVersion ?? SCHEMA_VERSION,
        ...(record !== undefined && { clientMinVersion: record.clientMinVersion }),
        ...(lambdaVersion !== undefined && { lambdaVersion }),
        updatedBy: `deploy:${VERSION}`,
      });
    const { usageRetentionDays, auditRetentionDays } = stackOptions;
    await repository.namespace("default", {
      ...(usageRetentionDays !== undefined && { usageRetentionDays }),
      ...(auditRetentionDays !== undefined && { auditRetentionDays }),
    });
  } finally {
    await repository.close();
  }
}
