import type { ApplyReport } from "zae-limiter/manifest";
import type { ResourceRequest } from "./request.ts";

/** The outcome of a request. */
export type Outcome =
  | { readonly status: "SUCCESS"; readonly physicalId: string; readonly report: ApplyReport }
  | { readonly status: "FAILED"; readonly physicalId: string; readonly reason: string };

/** The longest answer that CloudFormation reads. */
const MAX_BYTES = 4096;

const CUT = " … (the log of the function has more)";

/** The answer as CloudFormation takes it. A reason that is too long for it is cut. */
export function buildAnswer(request: ResourceRequest, outcome: Outcome): string {
  const whole = buildBody(request, outcome);
  if (outcome.status === "SUCCESS" || byteLength(whole) <= MAX_BYTES) return whole;
  const { reason } = outcome;
  // A binary search for the longest prefix that fits, because characters differ in their bytes.
  let [fits, tooLong] = [0, reason.length];
  while (tooLong - fits > 1) {
    const middle = Math.floor((fits + tooLong) / 2);
    const cut = buildBody(request, { ...outcome, reason: reason.slice(0, middle) + CUT });
    if (byteLength(cut) <= MAX_BYTES) fits = middle;
    else tooLong = middle;
  }
  return buildBody(request, { ...outcome, reason: reason.slice(0, fits) + CUT });
}

function buildBody(request: ResourceRequest, outcome: Outcome): string {
  const { StackId, RequestId, LogicalResourceId } = request;
  return JSON.stringify({
    Status: outcome.status,
    ...(outcome.status === "FAILED" && { Reason: outcome.reason }),
    PhysicalResourceId: outcome.physicalId,
    StackId,
    RequestId,
    LogicalResourceId,
    ...(outcome.status === "SUCCESS" && { Data: buildData(outcome.report) }),
  });
}

/** What `Fn::GetAtt` returns, which are texts. */
function buildData(report: ApplyReport): Readonly<Record<string, string>> {
  return {
    Created: String(report.created),
    Updated: String(report.updated),
    Deleted: String(report.deleted),
    Unchanged: String(report.unchanged),
    Revision: String(report.revision),
  };
}

function byteLength(text: string): number {
  return Buffer.byteLength(text);
}
