import { VersionMismatchError } from "../../core/errors.ts";
import { VERSION } from "../../core/version.ts";
import type { VersionRecord } from "../repository.ts";
import { emitWarning } from "../warning.ts";
import { judgeCompatibility } from "./items/compatibility.ts";
import type { ResolvedOptions } from "./opening/options.ts";
import { infrastructureCommand } from "./opening/url.ts";

/** Whose Lambda it is, and what is done if it is older than this library. */
type LambdaPlace = Pick<ResolvedOptions, "stackName" | "endpointUrl" | "lambda"> & {
  readonly region: string;
};

/** Which tables this process has warned of. */
const WARNED_MEMO = new Set<string>();

/** Most tables in the memo, which is cleared then; programs open a few. */
const MAX_WARNED = 1000;

/**
 * Warns of a deployed Lambda that is older than this library, once for each table and process, or
 * throws where the caller asked for that; so too if its version cannot be read. The record was read
 * to open the table, so this sends nothing. A newer Lambda is in order: a stack is updated first,
 * and clients restart meanwhile.
 */
export function checkLambda(record: VersionRecord | undefined, place: LambdaPlace): void {
  if (record === undefined || place.lambda === "ignore") return;
  const versions = { ...record, clientVersion: VERSION };
  const { lambda } = judgeCompatibility(versions);
  if (lambda !== "older" && lambda !== "unreadable") return;
  const message =
    `The Lambda of stack ${place.stackName} has version ${record.lambdaVersion}, this library ` +
    `${VERSION}. Update it with ${infrastructureCommand("upgrade --lambda-only", place)}.`;
  if (place.lambda === "must-match")
    throw new VersionMismatchError(message, { ...versions, canAutoUpdate: true });
  const table = JSON.stringify([place.stackName, place.region, place.endpointUrl]);
  if (WARNED_MEMO.has(table)) return;
  if (WARNED_MEMO.size >= MAX_WARNED) WARNED_MEMO.clear();
  WARNED_MEMO.add(table);
  emitWarning(`${message} Until then both work.`, { code: "WARN_LIMITER_LAMBDA_OLDER" });
}
