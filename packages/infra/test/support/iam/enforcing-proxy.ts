import {
  fail,
  ok,
  startProxyServer,
  type Answer,
  type Course,
  type ProxiedRequest,
  type ProxyServer,
} from "../../../../limiter/test/support/proxy-server.ts";
import { listIamCalls, type IamCall } from "./iam-calls.ts";
import { TABLE_ARN, type PolicyJudge } from "./policy-judge.ts";

/** An engine as AWS would be: it answers only what the policies of the caller allow. */
export interface EnforcingProxy extends ProxyServer {
  /** The actions that were denied so far, and requests about which nothing can be decided. */
  readonly denied: readonly string[];
}

/** Starts a server that asks the policies before each request, and the engine after. */
export async function startEnforcingProxy(
  engineUrl: string,
  judge: PolicyJudge,
): Promise<EnforcingProxy> {
  const denied: string[] = [];
  const server = await startProxyServer(engineUrl, async ({ operation, input }, course) => {
    const calls = decidable(operation, input);
    const refusals = await Promise.all(
      calls.map(async (call) => ((await judge.allows(call)) ? undefined : getRefusal(call))),
    );
    denied.push(...calls.filter((_, at) => refusals[at]).map(({ action }) => action));
    const isBatch = operation === "BatchExecuteStatement";
    course.reply(
      await (isBatch ? executeAllowed(input, course, refusals) : getAnswered(course, refusals)),
    );
  });
  return { ...server, denied };

  /** A request that cannot be decided about gets no answer, and counts as denied. */
  function decidable(operation: string, input: ProxiedRequest["input"]): readonly IamCall[] {
    try {
      return listIamCalls(operation, input);
    } catch (error) {
      denied.push(String(error));
      throw error;
    }
  }
}

/** Why a call is denied; nothing if it is allowed. */
type Refusal = string | undefined;

function getRefusal({ action, path }: IamCall): string {
  const resource = [TABLE_ARN, path].filter(Boolean).join("/");
  return (
    "User: arn:aws:sts::111122223333:assumed-role/program/session is not authorized to " +
    `perform: ${action} on resource: ${resource} because no identity-based policy allows ` +
    `the ${action} action`
  );
}

/** Any request but a batch of statements is answered or denied as a whole. */
async function getAnswered(course: Course, refusals: readonly Refusal[]): Promise<Answer> {
  const Message = refusals.find((refusal) => refusal !== undefined);
  return Message === undefined
    ? course.forward()
    : fail(400, "com.amazon.coral.service#AccessDeniedException", { Message });
}

/** The statements of a batch that are denied fail in their places; the others are executed. */
async function executeAllowed(
  input: ProxiedRequest["input"],
  course: Course,
  refusals: readonly Refusal[],
): Promise<Answer> {
  const sent = input["Statements"] as readonly unknown[];
  const Statements = sent.filter((_, at) => refusals[at] === undefined);
  const answer =
    Statements.length === 0
      ? ok({ Responses: [] })
      : await course.forward(JSON.stringify({ ...input, Statements }));
  if (answer.status !== 200) return answer;
  const { Responses, ...rest } = JSON.parse(answer.body) as { readonly Responses: unknown[] };
  const inPlace = refusals.map((Message) =>
    Message === undefined ? Responses.shift() : { Error: { Code: "AccessDenied", Message } },
  );
  return { ...answer, body: JSON.stringify({ ...rest, Responses: inPlace }) };
}
