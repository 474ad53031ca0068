import { InfrastructureNotFoundError, StackOperationError } from "zae-limiter";
import { assertAccount, callerAccount } from "../aws/account.ts";
import { withClients, type AwsClients } from "../aws/clients.ts";
import { resolvePlace, type StackPlace } from "../aws/place.ts";
import { defaultCodeBucket } from "../code/code-bucket.ts";
import { codeParameter, listFunctions } from "../options/functions.ts";
import { destructive, discard, prepareChangeSet } from "./change-set.ts";
import { untilDone } from "./deploy-stack.ts";
import { executeChangeSet } from "./execution.ts";
import { finishDeployment } from "./finish.ts";
import { waitForOthers } from "./follow.ts";
import { codeKeys, readCode } from "./plan.ts";
import { assertOurs, assertUpdatable, isInProgress, readStack } from "./stack-state.ts";
import { withLambdaVersion } from "../options/tags.ts";

/**
 * Gives the functions of a stack the code of this version, if theirs is another one. It uses a
 * change set, like every change: the next deployment would revert code that was uploaded without
 * CloudFormation.
 *
 * @example await updateLambda({ stack: "limits", region: "eu-west-1" });
 */
export async function updateLambda(place: StackPlace = {}): Promise<void> {
  const checked = resolvePlace(place);
  await withClients(checked, async (clients) => {
    const account = await callerAccount(clients);
    assertAccount(checked, account);
    await untilDone(clients, () => tryUpdate(clients, account));
  });
}

/** One attempt; undefined if another process changed the stack meanwhile. */
async function tryUpdate(clients: AwsClients, account: string): Promise<true | undefined> {
  const { stack, region } = clients;
  const existing = await readStack(clients);
  if (existing === undefined)
    throw new InfrastructureNotFoundError(
      `Stack ${stack} does not exist: deploy it with zae-limiter deploy --stack ${stack} --region ${region}.`,
    );
  await assertOurs(clients, existing);
  if (isInProgress(existing)) {
    await waitForOthers(clients, existing, {});
    return undefined;
  }
  assertUpdatable(clients, existing);
  const { parameters, tags } = existing;
  if (!Object.hasOwn(parameters, codeParameter("aggregator")))
    throw new StackOperationError(
      stack,
      `it was deployed by a release whose functions cannot be updated alone: run zae-limiter deploy --stack ${stack}.`,
    );
  // Without code there is no function, and this is not a place to add one.
  const names = listFunctions(parameters).filter((name) => parameters[codeParameter(name)]);
  const bucket = parameters["CodeBucket"] || defaultCodeBucket(account, region);
  const code = await readCode(names, bucket);
  if (code === undefined) return true;
  const keys = codeKeys(code);
  const changeSet = await prepareChangeSet(clients, {
    type: "UPDATE",
    templateBody: undefined,
    parameters: Object.keys(parameters).map((ParameterKey) => {
      const ParameterValue = keys[ParameterKey];
      if (ParameterValue !== undefined) return { ParameterKey, ParameterValue };
      return { ParameterKey, UsePreviousValue: true };
    }),
    tags: withLambdaVersion(tags),
    importExisting: false,
  });
  if (changeSet !== undefined) {
    const lost = destructive(changeSet.changes).filter(({ action }) => action !== "replace-if");
    if (lost.length > 0) {
      await discard(clients, changeSet);
      throw new StackOperationError(
        stack,
        `new code would replace or remove ${lost.map(({ logicalId }) => logicalId).join(", ")}: look at it with zae-limiter deploy --stack ${stack} --dry-run.`,
      );
    }
    if ((await executeChangeSet(clients, { code, changeSet, existing }, { account })) === undefined)
      return undefined;
  }
  await finishDeployment(clients, { code });
  return true;
}
