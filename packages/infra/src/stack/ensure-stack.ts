import type { StackOptions } from "zae-limiter/dynamodb";
import { assertAccount, callerAccount } from "../aws/account.ts";
import { withClients } from "../aws/clients.ts";
import { resolvePlace, type StackPlace } from "../aws/place.ts";
import { checkInput, deployUntilDone } from "./deploy-stack.ts";

/**
 * Deploys a missing stack, or waits for one that another process is creating. Never changes an
 * existing stack.
 *
 * @example await ensureStack({ stack: "limits", region: "eu-west-1" }, { enableAlarms: false });
 */
export async function ensureStack(
  place: StackPlace,
  stackOptions: StackOptions = {},
): Promise<void> {
  const checked = resolvePlace(place);
  checkInput(checked, { stackOptions });
  await withClients(checked, async (clients) => {
    const account = await callerAccount(clients);
    assertAccount(checked, account, stackOptions);
    await deployUntilDone(clients, { stackOptions, account, onlyMissing: true });
  });
}
