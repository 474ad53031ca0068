import {
  failed,
  startProxyServer,
  type ProxyServer,
} from "../../../../limiter/test/support/proxy-server.ts";
import { iamCallsOf } from "./iam-calls.ts";
import { TABLE_ARN, type PolicyJudge } from "./policy-judge.ts";

/** An engine as AWS would be: it answers only what the policies of the caller allow. */
export interface EnforcingProxy extends ProxyServer {
  /** The actions that were denied so far. */
  readonly denied: readonly string[];
}

/** Starts a server that asks the policies before each request, and the engine after. */
export async function startEnforcingProxy(
  engineUrl: string,
  judge: PolicyJudge,
): Promise<EnforcingProxy> {
  const denied: string[] = [];
  const server = await startProxyServer(engineUrl, async ({ operation, input }, course) => {
    const [refused] = await judge.denied(iamCallsOf(operation, input));
    if (refused === undefined) return course.reply(await course.forward());
    const { action, path } = refused;
    denied.push(action);
    const resource = [TABLE_ARN, path].filter(Boolean).join("/");
    course.reply(
      failed(400, "com.amazon.coral.service#AccessDeniedException", {
        Message:
          "User: arn:aws:sts::111122223333:assumed-role/program/session is not authorized to " +
          `perform: ${action} on resource: ${resource} because no identity-based policy allows ` +
          `the ${action} action`,
      }),
    );
  });
  return { ...server, denied };
}
