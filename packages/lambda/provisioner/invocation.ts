import type { LambdaContext } from "../runtime/lambda-context.ts";
import { errorFields, logLine } from "../runtime/log-line.ts";
import { buildAnswer, type Outcome } from "./answer.ts";
import { deliver, type Put } from "./delivery.ts";
import { answerDirectly, type DirectAnswer } from "./direct.ts";
import { physicalId } from "./physical-id.ts";
import { isDirectRequest, isResourceRequest, type ResourceRequest } from "./request.ts";
import { changeResource, type Provisioning } from "./resource.ts";

/** What an invocation needs of the process. */
export interface InvocationContext extends Pick<Provisioning, "sleep"> {
  /** What is needed to change limits; throws if the environment is invalid. */
  readonly start: () => Provisioning;
  /** Prints one line. */
  readonly print: (line: string) => void;
  readonly put: Put;
}

/**
 * Does what an event asks for. CloudFormation is always answered; if the answer cannot be
 * delivered, the invocation fails, and Lambda repeats it.
 */
export async function invoke(
  event: unknown,
  context: InvocationContext,
  lambda: LambdaContext = {},
): Promise<DirectAnswer | undefined> {
  if (isDirectRequest(event)) return answerDirectly(event, context.start(), lambda);
  if (!isResourceRequest(event))
    throw new Error(
      'The event is neither one of CloudFormation for a custom resource nor {"action": "plan" or "apply", "manifest": …}: check what invokes this function.',
    );
  const outcome = await computeOutcome(event, context, lambda);
  context.print(outcomeLine(event, outcome));
  await deliver(event.ResponseURL, buildAnswer(event, outcome), context);
  return undefined;
}

/** Without its environment the function changes nothing, but it does answer. */
async function computeOutcome(
  event: ResourceRequest,
  { start }: InvocationContext,
  lambda: LambdaContext,
): Promise<Outcome> {
  let provisioning: Provisioning;
  try {
    provisioning = start();
  } catch (error) {
    const id = event.PhysicalResourceId ?? physicalId(event, { tableName: NO_TABLE });
    return { status: "FAILED", physicalId: id, reason: errorFields(error).message };
  }
  return changeResource(event, provisioning, lambda);
}

/** No table has this name, so the id of a resource with it owns nothing. */
const NO_TABLE = "-";

/** The line of the log about a request. It has no properties, because some may be secret. */
function outcomeLine(request: ResourceRequest, outcome: Outcome): string {
  const { RequestType, LogicalResourceId, RequestId, StackId } = request;
  const about = { LogicalResourceId, PhysicalResourceId: outcome.physicalId, RequestId, StackId };
  if (outcome.status === "FAILED")
    return logLine("ERROR", { message: `${RequestType} failed: ${outcome.reason}`, ...about });
  const { created, updated, deleted, unchanged } = outcome.report;
  const message = `${RequestType}: ${created} created, ${updated} updated, ${deleted} deleted, ${unchanged} unchanged`;
  return logLine("INFO", { message, ...about });
}
