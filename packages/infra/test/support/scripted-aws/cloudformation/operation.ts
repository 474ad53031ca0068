// What CloudFormation does when a change set is executed or a stack is deleted, one event a step.
//
//   CREATE_IN_PROGRESS ─► CREATE_COMPLETE
//     └ a resource fails ─► ROLLBACK_IN_PROGRESS ─► ROLLBACK_COMPLETE
//   UPDATE_IN_PROGRESS ─► UPDATE_COMPLETE_CLEANUP_IN_PROGRESS ─► UPDATE_COMPLETE
//     └ a resource fails ─► UPDATE_ROLLBACK_IN_PROGRESS
//         ─► UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS ─► UPDATE_ROLLBACK_COMPLETE
//   DELETE_IN_PROGRESS ─► DELETE_COMPLETE, or DELETE_FAILED
import type { ResourceEffects, WantedResource } from "./resource-effects.ts";
import type {
  ScriptedChange,
  ScriptedChangeSet,
  ScriptedStack,
  StackResource,
} from "./stack-state.ts";
import { inOrder, presentResources, resolveIt, type Scope } from "./template-model.ts";

/** The context of an operation. */
export interface OperationContext {
  readonly stack: ScriptedStack;
  readonly effects: ResourceEffects;
  readonly scope: Scope;
  /** Adds an event about a resource, or about the stack itself. */
  readonly event: (status: string, resource?: EventSubject, reason?: string) => void;
  /** Why a resource is to fail, once. */
  readonly failure: (logicalId: string) => string | undefined;
  readonly outputs: () => ScriptedStack["outputs"];
  readonly finished: () => void;
}

/** The subject of an event. */
interface EventSubject {
  readonly logicalId: string;
  readonly type: string;
  readonly physicalId: string;
}

class ResourceFailure extends Error {
  readonly logicalId: string;

  constructor(logicalId: string, reason: string) {
    super(reason);
    this.logicalId = logicalId;
  }
}

/** Executes a change set that creates a stack. */
export async function* creation(
  changeSet: ScriptedChangeSet,
  context: OperationContext,
): AsyncGenerator<void, void> {
  const { stack, event, scope } = context;
  stack.target = changeSet.target;
  event("CREATE_IN_PROGRESS", undefined, "User Initiated");
  yield;
  try {
    yield* additions(inOrder(presentResources(scope)), changeSet, context);
  } catch (error) {
    if (!(error instanceof ResourceFailure)) throw error;
    event(
      "ROLLBACK_IN_PROGRESS",
      undefined,
      `The following resource(s) failed to create: [${error.logicalId}]. Rollback requested by user.`,
    );
    yield;
    yield* removal([...stack.resources.values()].toReversed(), context, "creation");
    changeSet.executionStatus = "EXECUTE_FAILED";
    event("ROLLBACK_COMPLETE");
    context.finished();
    return;
  }
  changeSet.executionStatus = "EXECUTE_COMPLETE";
  stack.outputs = context.outputs();
  event("CREATE_COMPLETE");
  context.finished();
}

/** Executes a change set that updates a stack. */
export async function* update(
  changeSet: ScriptedChangeSet,
  context: OperationContext,
): AsyncGenerator<void, void> {
  const { stack, event, scope } = context;
  const before = new Map([...stack.resources].map(([id, resource]) => [id, { ...resource }]));
  const previous = stack.target;
  stack.target = changeSet.target;
  event("UPDATE_IN_PROGRESS", undefined, "User Initiated");
  yield;
  const changed = new Map(changeSet.changes.map((change) => [change.logicalId, change]));
  const wanted = inOrder(presentResources(scope)).filter((id) => changed.has(id));
  try {
    for (const logicalId of wanted) {
      const change = changed.get(logicalId)!;
      if (change.action === "Modify") yield* modify(change, context);
      else yield* additions([logicalId], changeSet, context);
    }
  } catch (error) {
    if (!(error instanceof ResourceFailure)) throw error;
    yield* rolledBack(error, { before, previous }, changeSet, context);
    return;
  }
  event("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS");
  yield;
  const gone = [...before.values()].filter(
    ({ logicalId, physicalId }) =>
      changed.get(logicalId)?.action === "Remove" ||
      stack.resources.get(logicalId)?.physicalId !== physicalId,
  );
  yield* removal(gone.toReversed(), context, "update");
  changeSet.executionStatus = "EXECUTE_COMPLETE";
  stack.outputs = context.outputs();
  event("UPDATE_COMPLETE");
  context.finished();
}

/** Deletes a stack. */
export async function* deletion(context: OperationContext): AsyncGenerator<void, void> {
  const { stack, event } = context;
  event("DELETE_IN_PROGRESS", undefined, "User Initiated");
  yield;
  const resources = [...stack.resources.values()].toReversed();
  const failed = yield* removal(resources, context, "deletion");
  if (failed.length > 0)
    event(
      "DELETE_FAILED",
      undefined,
      `The following resource(s) failed to delete: [${failed.join(", ")}]. `,
    );
  else event("DELETE_COMPLETE");
  context.finished();
}

/** Adds resources one after the other; each is begun before the one before it is complete. */
async function* additions(
  ids: readonly string[],
  changeSet: ScriptedChangeSet,
  context: OperationContext,
): AsyncGenerator<void, void> {
  const { stack, event, effects, scope, failure } = context;
  const declared = presentResources(scope);
  const begun = new Set<string>();
  const begin = (logicalId: string | undefined): void => {
    if (logicalId === undefined || begun.has(logicalId)) return;
    begun.add(logicalId);
    event("CREATE_IN_PROGRESS", { logicalId, type: declared.get(logicalId)!.Type, physicalId: "" });
  };
  for (const [position, logicalId] of ids.entries()) {
    const resource = declared.get(logicalId)!;
    const isImport = changeSet.changes.some(
      (change) => change.logicalId === logicalId && change.action === "Import",
    );
    begin(logicalId);
    yield;
    begin(ids[position + 1]);
    yield;
    const wanted = wantedResource(logicalId, context);
    const subject = { logicalId, type: resource.Type, physicalId: "" };
    try {
      const reason = failure(logicalId);
      if (reason !== undefined) throw new Error(reason);
      const made = isImport ? await effects.adopt(wanted) : await effects.make(wanted);
      const status = isImport ? "IMPORT_COMPLETE" : "CREATE_COMPLETE";
      stack.resources.set(logicalId, {
        ...subject,
        ...made,
        properties: wanted.properties,
        declared: resource,
        status,
      });
      event(status, { ...subject, physicalId: made.physicalId });
      yield;
    } catch (error) {
      // Several events have one time, so what was cancelled may be listed before its cause.
      const next = ids[position + 1];
      if (next !== undefined)
        event(
          "CREATE_FAILED",
          { logicalId: next, type: declared.get(next)!.Type, physicalId: "" },
          "Resource creation cancelled",
        );
      event("CREATE_FAILED", subject, (error as Error).message);
      yield;
      throw new ResourceFailure(logicalId, (error as Error).message);
    }
  }
}

async function* modify(
  change: ScriptedChange,
  context: OperationContext,
): AsyncGenerator<void, void> {
  const { stack, event, effects, failure } = context;
  const { logicalId } = change;
  const existing = stack.resources.get(logicalId)!;
  const wanted = wantedResource(logicalId, context);
  const isReplaced = change.replacement === "True";
  event(
    "UPDATE_IN_PROGRESS",
    existing,
    isReplaced
      ? "Requested update requires the creation of a new physical resource; hence creating one."
      : undefined,
  );
  yield;
  try {
    const reason = failure(logicalId);
    if (reason !== undefined) throw new Error(reason);
    const isSameName = ["TableName", "RoleName", "FunctionName", "QueueName"].some(
      (name) =>
        wanted.properties[name] !== undefined &&
        wanted.properties[name] === existing.properties[name],
    );
    if (isReplaced && isSameName)
      throw new Error(
        `CloudFormation cannot update a stack when a custom-named resource requires replacing. Rename ${existing.physicalId} and update the stack again.`,
      );
    const made = isReplaced ? await effects.make(wanted) : await effects.adopt(wanted);
    stack.resources.set(logicalId, {
      ...existing,
      ...made,
      properties: wanted.properties,
      declared: presentResources(context.scope).get(logicalId)!,
      status: "UPDATE_COMPLETE",
    });
    event("UPDATE_COMPLETE", { ...existing, physicalId: made.physicalId });
  } catch (error) {
    event("UPDATE_FAILED", existing, (error as Error).message);
    yield;
    throw new ResourceFailure(logicalId, (error as Error).message);
  }
  yield;
}

async function* rolledBack(
  { logicalId: failed }: ResourceFailure,
  {
    before,
    previous,
  }: {
    readonly before: ReadonlyMap<string, StackResource>;
    readonly previous: ScriptedStack["target"];
  },
  changeSet: ScriptedChangeSet,
  context: OperationContext,
): AsyncGenerator<void, void> {
  const { stack, event } = context;
  event(
    "UPDATE_ROLLBACK_IN_PROGRESS",
    undefined,
    `The following resource(s) failed to update: [${failed}]. `,
  );
  yield;
  const added: StackResource[] = [];
  for (const [logicalId, resource] of stack.resources) {
    const old = before.get(logicalId);
    if (old?.physicalId !== resource.physicalId) added.push(resource);
    if (old === undefined || (old.properties === resource.properties && logicalId !== failed))
      continue;
    await context.effects.adopt({
      ...wantedFields(stack),
      logicalId,
      type: old.type,
      properties: old.properties,
      tags: previous!.tags,
    });
    stack.resources.set(logicalId, { ...old, status: "UPDATE_COMPLETE" });
    event("UPDATE_COMPLETE", old);
    yield;
  }
  stack.target = previous;
  event("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS");
  yield;
  yield* removal(added.toReversed(), context, "creation");
  changeSet.executionStatus = "EXECUTE_FAILED";
  event("UPDATE_ROLLBACK_COMPLETE");
  context.finished();
}

/** Deletes resources, or leaves those alone that are retained; returns those that failed. */
async function* removal(
  resources: readonly StackResource[],
  { stack, event, effects, failure }: OperationContext,
  because: "creation" | "update" | "deletion",
): AsyncGenerator<void, readonly string[]> {
  const failed: string[] = [];
  for (const resource of resources) {
    const { logicalId, type, physicalId, declared, properties } = resource;
    const current = stack.resources.get(logicalId);
    const isReplaced =
      because === "update" && current !== undefined && current.physicalId !== physicalId;
    const policy = isReplaced ? declared.UpdateReplacePolicy : declared.DeletionPolicy;
    const isImported = because === "creation" && resource.status === "IMPORT_COMPLETE";
    const isRetained =
      isImported ||
      policy === "Retain" ||
      (policy === "RetainExceptOnCreate" && because !== "creation");
    if (isRetained) event("DELETE_SKIPPED", resource);
    else {
      event("DELETE_IN_PROGRESS", resource);
      yield;
      try {
        const reason = because === "deletion" ? failure(logicalId) : undefined;
        if (reason !== undefined) throw new Error(reason);
        await effects.unmake(type, physicalId, properties);
        event("DELETE_COMPLETE", resource);
      } catch (error) {
        failed.push(logicalId);
        event("DELETE_FAILED", resource, (error as Error).message);
      }
    }
    if (!isReplaced && !failed.includes(logicalId) && current?.physicalId === physicalId)
      stack.resources.delete(logicalId);
    yield;
  }
  return failed;
}

function wantedResource(logicalId: string, { stack, scope }: OperationContext): WantedResource {
  const declared = scope.template.Resources[logicalId]!;
  return {
    ...wantedFields(stack),
    logicalId,
    type: declared.Type,
    properties: resolveIt(declared.Properties ?? {}, scope) as Record<string, unknown>,
    tags: stack.target!.tags,
  };
}

function wantedFields({ name, region }: ScriptedStack): { stack: string; region: string } {
  return { stack: name, region };
}
