import type { DeclaredResource, ParsedTemplate } from "./template-model.ts";

/** One resource of a stack. */
export interface StackResource {
  readonly logicalId: string;
  readonly type: string;
  physicalId: string;
  /** Its properties, without functions. */
  properties: Readonly<Record<string, unknown>>;
  declared: DeclaredResource;
  attributes: Readonly<Record<string, string>>;
  status: string;
}

/** One event of a stack. */
export interface ScriptedEvent {
  readonly id: string;
  readonly at: Date;
  readonly logicalId: string;
  readonly physicalId: string;
  readonly type: string;
  readonly status: string;
  readonly reason: string | undefined;
  readonly token: string | undefined;
}

/** One change of a change set. */
export interface ScriptedChange {
  readonly action: "Add" | "Modify" | "Remove" | "Import";
  readonly logicalId: string;
  readonly type: string;
  readonly physicalId: string | undefined;
  readonly replacement: "True" | "False" | "Conditional" | undefined;
  readonly scope: readonly ("Properties" | "Tags" | "DeletionPolicy" | "UpdateReplacePolicy")[];
  /** Names of properties that cause it, and whether they require recreation. */
  readonly causes: readonly { readonly name: string; readonly recreates: string }[];
}

/** The wanted state of a stack. */
export interface Target {
  readonly template: ParsedTemplate;
  readonly templateBody: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly tags: Readonly<Record<string, string>>;
}

/** A change set. */
export interface ScriptedChangeSet {
  readonly id: string;
  readonly name: string;
  readonly type: "CREATE" | "UPDATE";
  readonly token: string | undefined;
  readonly importExisting: boolean;
  readonly createdAt: Date;
  readonly target: Target;
  status: "CREATE_PENDING" | "CREATE_IN_PROGRESS" | "CREATE_COMPLETE" | "FAILED";
  executionStatus: string;
  reason: string | undefined;
  changes: readonly ScriptedChange[];
}

/** A stack and its history. */
export interface ScriptedStack {
  readonly id: string;
  readonly name: string;
  readonly region: string;
  readonly createdAt: Date;
  updatedAt: Date | undefined;
  deletedAt: Date | undefined;
  status: string;
  reason: string | undefined;
  terminationProtection: boolean;
  target: Target | undefined;
  outputs: readonly Readonly<Record<string, string>>[];
  readonly resources: Map<string, StackResource>;
  /** Oldest first. */
  readonly events: ScriptedEvent[];
  readonly changeSets: Map<string, ScriptedChangeSet>;
  /** The rest of the running operation. */
  operation: AsyncGenerator<void, void> | undefined;
  /** The status that reads show at first after an operation started, and for how many reads. */
  stale: { readonly status: string; looks: number };
  /** The token of the running operation. */
  token: string | undefined;
}

/** Whether a stack is in the middle of an operation. */
export function isInProgress({ status }: ScriptedStack): boolean {
  return status.endsWith("_IN_PROGRESS") && status !== "REVIEW_IN_PROGRESS";
}
