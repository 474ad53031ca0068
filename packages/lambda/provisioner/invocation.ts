import type { LambdaContext } from "../runtime/lambda-context.ts";
import { logLine } from "../runtime/log-line.ts";
import { answerOf, type Outcome } from "./answer.ts";
import { deliver, type Put } from "./delivery.ts";
import { answerDirectly, type DirectAnswer } from "./direct.ts";
import { isDirectRequest, isResourceRequest, type ResourceRequest } from "./request.ts";
import { changeResource, type Provisioning } from "./resource.ts";

/** What an invocation needs of the process. */
export interface InvocationContext extends Provisioning {
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
  if (isDirectRequest(event)) return answerDirectly(event, context, lambda);
  if (!isResourceRequest(event))
    throw new Error(
      'The event is neither one of CloudFormation for a custom resource nor {"action": "plan" or "apply", "manifest": …}: check what invokes this function.',
    );
  const outcome = await changeResource(event, context, lambda);
  context.print(lineOf(event, outcome));
  await deliver(event.ResponseURL, answerOf(event, outcome), context);
  return undefined;
}

/** Tells what became of a request. Properties are not logged: some may be secret. */
function lineOf(request: ResourceRequest, outcome: Outcome): string {
  const { RequestType, LogicalResourceId, RequestId, StackId } = request;
  const about = { LogicalResourceId, PhysicalResourceId: outcome.physicalId, RequestId, StackId };
  if (outcome.status === "FAILED")
    return logLine("ERROR", { message: `${RequestType} failed: ${outcome.reason}`, ...about });
  const { created, updated, deleted, unchanged } = outcome.report;
  const message = `${RequestType}: ${created} created, ${updated} updated, ${deleted} deleted, ${unchanged} unchanged`;
  return logLine("INFO", { message, ...about });
}
