import { yamlDocument } from "@zae-limiter/infra/manifest";
import {
  applyLimits,
  planLimits,
  readManifest,
  type ApplyReport,
  type Manifest,
  type PlanEntry,
} from "zae-limiter/manifest";
import type { LambdaContext } from "../runtime/lambda-context.ts";
import type { DirectRequest } from "./request.ts";
import type { Provisioning } from "./resource.ts";
import { withinTime } from "./time.ts";

/** The result for a program that calls the function itself. */
export type DirectAnswer = { readonly namespace: string } & (
  | {
      readonly status: "planned";
      readonly revision: number;
      /** What would be changed. */
      readonly changes: readonly PlanEntry[];
      readonly unchanged: number;
    }
  | ({ readonly status: "applied" } & ApplyReport)
);

const KNOWN = ["action", "namespace", "manifest"];

/** Plans or applies a manifest. Throws if that fails. */
export async function answerDirectly(
  request: DirectRequest,
  { open, sleep }: Provisioning,
  lambda: LambdaContext,
): Promise<DirectAnswer> {
  const manifest = toManifest(request);
  const { namespace } = manifest;
  const isApply = request.action === "apply";
  await using repository = await open(namespace, { create: isApply });
  if (isApply) {
    const report = await withinTime(lambda, sleep, (signal) =>
      applyLimits(repository, manifest, { signal }),
    );
    return { status: "applied", namespace, ...report };
  }
  const { revision, entries } = await planLimits(repository, manifest);
  const changes = entries.filter(({ action }) => action !== "unchanged");
  const unchanged = entries.length - changes.length;
  return { status: "planned", namespace, revision, changes, unchanged };
}

function toManifest(request: DirectRequest): Manifest {
  const unknown = Object.keys(request).filter((name) => !KNOWN.includes(name));
  if (unknown.length > 0)
    throw new Error(
      `The event has ${unknown.join(", ")}, which are unknown; the known fields are ${KNOWN.join(", ")}.`,
    );
  const { namespace, manifest } = request;
  if (typeof manifest !== "string")
    throw new Error("The manifest of the event must be a text, YAML or JSON.");
  return readManifest([
    ...(namespace === undefined ? [] : [yamlDocument("the event", JSON.stringify({ namespace }))]),
    yamlDocument("manifest", manifest),
  ]);
}
