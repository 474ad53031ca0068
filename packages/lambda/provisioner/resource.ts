import { isDeepStrictEqual } from "node:util";
import { yamlDocument } from "@zae-limiter/infra/manifest";
import {
  ApplyConflictError,
  InfrastructureNotFoundError,
  type ProvisionerState,
  type Repository,
} from "zae-limiter";
import {
  applyLimits,
  planLimits,
  readManifest,
  type ApplyReport,
  type LimitsPlan,
  type Manifest,
} from "zae-limiter/manifest";
import type { LambdaContext } from "../runtime/lambda-context.ts";
import type { Outcome } from "./answer.ts";
import { isMadeUp, namespaceOwnedBy, physicalId } from "./physical-id.ts";
import { readProperties } from "./properties.ts";
import { toReason } from "./reason.ts";
import type { ResourceRequest } from "./request.ts";
import { withinTime, type Sleep } from "./time.ts";

/** What is needed of the process to change limits. */
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

/** What one step of a request needs. `owner` is the physical id of the resource that it changes. */
interface Work extends Provisioning {
  readonly owner: string;
  readonly principal: string;
  readonly signal: AbortSignal;
  /**
   * Whether an earlier request of this resource may still run, because CloudFormation gave up on it
   * when something else in the stack failed: it must not change anything after this one.
   */
  readonly isAfterAnother: boolean;
}

const NOTHING: ApplyReport = { revision: 0, created: 0, updated: 0, deleted: 0, unchanged: 0 };

/** How often to look whether another apply has ended, and how many times: Lambda ends it first. */
const LOOK_EVERY_MS = 1000;
const MAX_LOOKS = 900;

/** Does what CloudFormation asks for. A failure is part of the outcome. */
export async function changeResource(
  request: ResourceRequest,
  provisioning: Provisioning,
  lambda: LambdaContext,
): Promise<Outcome> {
  const { tableName, sleep } = provisioning;
  // A failure leaves the existing resource, and CloudFormation deletes a new one by this id.
  let id = request.PhysicalResourceId ?? physicalId(request, { tableName });
  const runWithin = (
    owner: string,
    work: (parts: Work) => Promise<ApplyReport>,
  ): Promise<ApplyReport> =>
    withinTime(lambda, sleep, (signal) =>
      work({
        ...provisioning,
        owner,
        principal: request.StackId,
        signal,
        isAfterAnother: isAfterAnother(request),
      }),
    );
  try {
    const { ResourceProperties: properties } = request;
    if (request.RequestType === "Delete") {
      const owner = isMadeUp(id) ? buildId(request, tableName, properties) : id;
      return { status: "SUCCESS", physicalId: id, report: await runWithin(owner, removeOwned) };
    }
    const manifest = readProperties(properties);
    const target = physicalId(request, { tableName, namespace: manifest.namespace });
    if (request.RequestType === "Create") id = target;
    const report = await runWithin(target, async (work) => {
      const applied = await applyOwned(manifest, work);
      const abandoned = findAbandonedId(request, target, tableName);
      if (abandoned !== undefined) await removeOwned({ ...work, owner: abandoned });
      return applied;
    });
    return { status: "SUCCESS", physicalId: target, report };
  } catch (error) {
    return { status: "FAILED", physicalId: id, reason: toReason(error) };
  }
}

/**
 * Whether CloudFormation may have given up on a request before this one: a "Create" whose id it
 * never got, or an "Update" that this one reverts. An event that Lambda repeats looks the same.
 */
function isAfterAnother(request: ResourceRequest): boolean {
  const { RequestType, PhysicalResourceId, ResourceProperties, OldResourceProperties } = request;
  if (RequestType === "Update")
    return !isDeepStrictEqual(ResourceProperties, OldResourceProperties);
  return RequestType === "Delete" && isMadeUp(PhysicalResourceId ?? "");
}

/** Applies what a resource declares; from then on the resource owns it. */
async function applyOwned(manifest: Manifest, work: Work): Promise<ApplyReport> {
  await using repository = await work.open(manifest.namespace, { create: true });
  for (;;) {
    const report = await applyOrJoin(repository, manifest, work);
    const { created, updated, deleted, revision } = report;
    if (!work.isAfterAnother || created + updated + deleted > 0) return report;
    // There was nothing to do, perhaps because the other request has not started to write.
    const state = await repository.getProvisionerState();
    if (state.revision === revision && (await outdateState(repository, state)))
      return { ...report, revision: revision + 1 };
    work.signal.throwIfAborted();
  }
}

/**
 * Gives the state another revision, so that an apply that was planned with this one stops before
 * its first change. Returns false if the state was changed before.
 */
async function outdateState(repository: Repository, state: ProvisionerState): Promise<boolean> {
  try {
    await repository.putProvisionerState(state);
    return true;
  } catch (error) {
    if (error instanceof ApplyConflictError) return false;
    throw error;
  }
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
    return await removeFrom(
      repository,
      readManifest([yamlDocument("nothing", JSON.stringify({ namespace }))]),
      work,
    );
  } catch (error) {
    if (error instanceof InfrastructureNotFoundError) return NOTHING;
    throw error;
  }
}

async function removeFrom(
  repository: Repository,
  nothing: Manifest,
  work: Work,
): Promise<ApplyReport> {
  const state = await repository.getProvisionerState();
  const { owner, revision } = state;
  if (owner !== work.owner) {
    if (!work.isAfterAnother || (await outdateState(repository, state))) return NOTHING;
    work.signal.throwIfAborted();
    return removeFrom(repository, nothing, work);
  }
  // If another resource takes over meanwhile, the revision changes and nothing is deleted.
  const plan = { ...(await planLimits(repository, nothing)), revision };
  try {
    return await applyOrJoin(repository, nothing, work, plan);
  } catch (error) {
    if (!(error instanceof ApplyConflictError)) throw error;
    if ((await repository.getProvisionerState()).owner !== work.owner) return NOTHING;
    throw error;
  }
}

/**
 * Applies a manifest. Lambda may deliver an event twice at once: if another apply of the same
 * manifest overtakes this one, it waits for the end of that one. One of anything else came later
 * and wins: CloudFormation no longer waited for this one.
 */
async function applyOrJoin(
  repository: Repository,
  manifest: Manifest,
  { owner, principal, signal, sleep }: Work,
  plan?: LimitsPlan,
): Promise<ApplyReport> {
  try {
    // The owner stays also while its limits are deleted: a deletion that failed is found again.
    const options = { owner, principal, signal, ...(plan !== undefined && { plan }) };
    return await applyLimits(repository, manifest, options);
  } catch (error) {
    if (!(error instanceof ApplyConflictError)) throw error;
    for (let look = 1; look <= MAX_LOOKS && !signal.aborted; look += 1) {
      const state = await repository.getProvisionerState();
      const { pending, appliedHash, revision } = state;
      if (state.owner !== owner || (pending?.hash ?? appliedHash) !== manifest.hash) throw error;
      if (pending === undefined) return { ...NOTHING, revision };
      await sleep(LOOK_EVERY_MS);
    }
    throw error;
  }
}

/**
 * The id of the resource that a failed update to another namespace has left behind. CloudFormation
 * returns to the earlier resource, or goes on to another one, and does not know that this one
 * exists.
 */
function findAbandonedId(
  request: ResourceRequest,
  target: string,
  tableName: string,
): string | undefined {
  const { RequestType, PhysicalResourceId, OldResourceProperties } = request;
  if (RequestType !== "Update") return undefined;
  const before = buildId(request, tableName, OldResourceProperties);
  return before === target || before === PhysicalResourceId ? undefined : before;
}

/** The id of the resource with these properties, even if they are invalid. */
function buildId(request: ResourceRequest, tableName: string, properties: unknown): string {
  return physicalId(request, { tableName, namespace: readNamespace(properties) });
}

function readNamespace(properties: unknown): string | undefined {
  try {
    return readProperties(properties).namespace;
  } catch {
    return undefined;
  }
}
