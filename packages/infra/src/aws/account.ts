import { GetCallerIdentityCommand } from "@aws-sdk/client-sts";
import { buildWrongAccountError } from "./aws-errors.ts";
import type { AwsClients } from "./clients.ts";
import type { CheckedPlace } from "./place.ts";

/** The id of the account that the credentials belong to. */
export async function callerAccount(clients: AwsClients): Promise<string> {
  const { Account } = await clients.call("sts:GetCallerIdentity", (options) =>
    clients.sts.send(new GetCallerIdentityCommand({}), options),
  );
  return Account!;
}

/** Throws if the place, or an ARN among some options, is of another account. */
export function assertAccount(
  { account: meant }: Pick<CheckedPlace, "account">,
  account: string,
  options: object = {},
): void {
  if (meant !== undefined && meant !== account)
    throw buildWrongAccountError(meant, account, "The option account");
  for (const [option, value] of Object.entries(options)) {
    const [, owner] = /^arn:[^:]*:[^:]*:[^:]*:(\d{12}):/.exec(String(value)) ?? [];
    if (owner !== undefined && owner !== account)
      throw buildWrongAccountError(owner, account, option);
  }
}
