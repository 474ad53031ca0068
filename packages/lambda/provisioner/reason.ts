import {
  ApplyError,
  ManifestError,
  type ManifestProblem,
  type PlanEntry,
} from "zae-limiter/manifest";
import { errorFields } from "../runtime/log-line.ts";

/** How many changes that were not made are listed. */
const MAX_LEFT = 10;

/** Why something failed, with everything that whoever wrote the template needs to know. */
export function reasonOf(error: unknown, placeOf: (problem: ManifestProblem) => string): string {
  if (error instanceof ManifestError)
    return error.problems.map((problem) => problemText(problem, placeOf)).join("\n");
  const { message } = errorFields(error);
  return error instanceof ApplyError ? `${message} ${leftText(error.left)}` : message;
}

function problemText(
  problem: ManifestProblem,
  placeOf: (problem: ManifestProblem) => string,
): string {
  const { message, suggestion } = problem;
  return [`${placeOf(problem)}: ${message}`, suggestion].filter(Boolean).join(". ");
}

function leftText(left: readonly PlanEntry[]): string {
  const names = left
    .slice(0, MAX_LEFT)
    .map(({ action, level, entityId, resource }) =>
      [action, level, entityId, resource].filter((part) => part !== undefined).join(" "),
    );
  const more = left.length - names.length;
  if (more > 0) names.push(`${more} more`);
  return `Left: ${names.join(", ")}.`;
}
