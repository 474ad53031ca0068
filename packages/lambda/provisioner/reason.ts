import { ApplyError, formatProblem, ManifestError, type PlanEntry } from "zae-limiter/manifest";
import { errorFields } from "../runtime/log-line.ts";

/** How many changes that were not made are listed. */
const MAX_LEFT = 10;

/** Why something failed, with everything that the author of the template needs to know. */
export function toReason(error: unknown): string {
  if (error instanceof ManifestError) return error.problems.map(formatProblem).join("\n");
  const { message } = errorFields(error);
  if (!(error instanceof ApplyError) || error.left.length === 0)
    // CloudFormation rejects an answer without a reason.
    return message || String(error);
  return `${message} Left: ${formatList(error.left)}.`;
}

function formatList(left: readonly PlanEntry[]): string {
  const names = left
    .slice(0, MAX_LEFT)
    .map(({ action, level, entityId, resource }) =>
      [action, level, entityId, resource].filter((part) => part !== undefined).join(" "),
    );
  const more = left.length - names.length;
  return [...names, ...(more > 0 ? [`${more} more`] : [])].join(", ");
}
