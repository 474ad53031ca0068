import { ApplyConflictError, InfrastructureNotFoundError, type Repository } from "zae-limiter";
import {
  applyLimits,
  ManifestError,
  planLimits,
  readManifest,
  type ApplyReport,
  type Manifest,
} from "zae-limiter/manifest";
import type { LambdaContext } from "../runtime/lambda-context.ts";
import type { Outcome } from "./answer.ts";
import { isMadeUp, namespaceOwnedBy, physicalId } from "./physical-id.ts";
import { declaredProperties, type DeclaredProperties } from "./properties.ts";
import { plainDocument } from "./property-names.ts";
import { reasonOf } from "./reason.ts";
import type { ResourceRequest } from "./request.ts";
import { withinTime, type Sleep } from "./time.ts";

/** What changing limits needs of the process. */
export interface Provisioning {
  readonly tableName: string;
  /**
   * Opens a namespace of the table. One that is not registered gets registered; if nothing may be
   * created, it is empty, and nothing can be stored there. The caller closes it.
   */
  readonly open: (
    namespace: string,
    options: { readonly create: boolean },
  ) => Promise<Repository & AsyncDisposable>;
  readonly sleep: Sleep;
}

/** A part of one request: the physical id is that of the resource whose limits it is about. */
interface Work extends Provisioning {
  readonly owner: string;
  readonly principal: string;
  readonly signal: AbortSignal;
}

const NOTHING: ApplyReport = { revision: 0, created: 0, updated: 0, deleted: 0, unchanged: 0 };

/**
 * How long to wait for an apply that has overtaken this one, before this one is tried again. Of two
 * deliveries of one event, both then succeed.
 */
const OVERTAKEN_PAUSES_MS = [500, 2000];

/** Does what CloudFormation asks for. Whatever goes wrong is in the outcome. */
export async function changeResource(
  request: ResourceRequest,
  provisioning: Provisioning,
  lambda: LambdaContext,
): Promise<Outcome> {
  const { tableName, sleep } = provisioning;
  const properties = declaredProperties(request.ResourceProperties, tableName);
  // What fails leaves the resource that there was, and a new one is deleted by this id.
  let id = request.PhysicalResourceId ?? physicalId(request, { tableName });
  const within = (
    owner: string,
    work: (parts: Work) => Promise<ApplyReport>,
  ): Promise<ApplyReport> =>
    withinTime(lambda, sleep, (signal) =>
      work({ ...provisioning, owner, principal: request.StackId, signal }),
    );
  try {
    if (request.RequestType === "Delete") {
      const owner = isMadeUp(id) ? idOf(request, tableName, properties) : id;
      return { status: "SUCCESS", physicalId: id, report: await within(owner, removeOwned) };
    }
    const manifest = manifestOf(properties);
    const target = physicalId(request, { tableName, namespace: manifest.namespace });
    if (request.RequestType === "Create") id = target;
    const report = await within(target, async (work) => {
      const applied = await applyOwned(manifest, work);
      const abandoned = abandonedId(request, target, tableName);
      if (abandoned !== undefined) await removeOwned({ ...work, owner: abandoned });
      return applied;
    });
    return { status: "SUCCESS", physicalId: target, report };
  } catch (error) {
    const reason = reasonOf(error, (problem) => properties.names.format(problem));
    return { status: "FAILED", physicalId: id, reason };
  }
}

/** Applies what a resource declares; from then on the resource owns it. */
async function applyOwned(manifest: Manifest, work: Work): Promise<ApplyReport> {
  await using repository = await work.open(manifest.namespace, { create: true });
  // Awaited here, or the repository would be closed meanwhile.
  return await retryOvertaken(work, () => applyLimits(repository, manifest, optionsOf(work)));
}

/**
 * Deletes what a resource owns. If another one has taken over the namespace, if nothing was ever
 * applied, or if there is no table, there is nothing to delete.
 */
async function removeOwned(work: Work): Promise<ApplyReport> {
  const namespace = namespaceOwnedBy(work.owner, work.tableName);
  if (namespace === undefined) return NOTHING;
  try {
    await using repository = await work.open(namespace, { create: false });
    return await retryOvertaken(work, async () => {
      const { owner, revision } = await repository.getProvisionerState();
      if (owner !== work.owner) return NOTHING;
      const manifest = readManifest([plainDocument("nothing", { namespace })]);
      // Whoever takes over meanwhile changes the revision, and nothing is deleted.
      const plan = { ...(await planLimits(repository, manifest)), revision };
      return applyLimits(repository, manifest, { ...optionsOf(work), plan });
    });
  } catch (error) {
    if (error instanceof InfrastructureNotFoundError) return NOTHING;
    throw error;
  }
}

/** The owner stays also while its limits are deleted: a deletion that failed is tried again. */
function optionsOf({
  owner,
  principal,
  signal,
}: Work): Pick<Work, "owner" | "principal" | "signal"> {
  return { owner, principal, signal };
}

async function retryOvertaken(
  { sleep }: Work,
  attempt: () => Promise<ApplyReport>,
): Promise<ApplyReport> {
  for (const pauseMs of OVERTAKEN_PAUSES_MS) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof ApplyConflictError)) throw error;
    }
    await sleep(pauseMs);
  }
  return attempt();
}

/**
 * The id of what a failed update to another namespace has left behind. CloudFormation goes back to
 * the resource of before, and knows of no other one to delete.
 */
function abandonedId(
  request: ResourceRequest,
  target: string,
  tableName: string,
): string | undefined {
  if (request.RequestType !== "Update" || request.PhysicalResourceId !== target) return undefined;
  const { OldResourceProperties } = request;
  const before = idOf(request, tableName, declaredProperties(OldResourceProperties, tableName));
  return before === target ? undefined : before;
}

/** The id of the resource with these properties, also if they are wrong. */
function idOf(request: ResourceRequest, tableName: string, properties: DeclaredProperties): string {
  return physicalId(request, { tableName, namespace: namespaceOf(properties) });
}

function namespaceOf(properties: DeclaredProperties): string | undefined {
  try {
    return manifestOf(properties).namespace;
  } catch {
    return undefined;
  }
}

/** Reads everything, so that all problems are told at once. */
function manifestOf({ documents, problems }: DeclaredProperties): Manifest {
  try {
    const manifest = readManifest(documents);
    if (problems.length === 0) return manifest;
  } catch (error) {
    if (!(error instanceof ManifestError)) throw error;
    throw new ManifestError([...problems, ...error.problems]);
  }
  throw new ManifestError(problems);
}
