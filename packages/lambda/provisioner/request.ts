/** The request of CloudFormation for a custom resource. */
export interface ResourceRequest {
  readonly RequestType: "Create" | "Update" | "Delete";
  /** The address for the answer. Knowing it is enough to answer, so it is not logged. */
  readonly ResponseURL: string;
  readonly StackId: string;
  readonly RequestId: string;
  readonly LogicalResourceId: string;
  /** Absent in "Create". */
  readonly PhysicalResourceId?: string;
  readonly ResourceProperties?: unknown;
  /** Only in "Update". */
  readonly OldResourceProperties?: unknown;
}

/** The request of a program that calls the function itself. */
export interface DirectRequest {
  readonly action: "plan" | "apply";
  /** Must be that of the manifest, or stands for it. */
  readonly namespace?: string;
  /** The text of a manifest, YAML or JSON. */
  readonly manifest: unknown;
}

const TEXTS = ["ResponseURL", "StackId", "RequestId", "LogicalResourceId"] as const;

/** Whether an event is one of CloudFormation that can be answered. */
export function isResourceRequest(event: unknown): event is ResourceRequest {
  const request = Object(event) as Readonly<Record<string, unknown>>;
  return (
    ["Create", "Update", "Delete"].includes(request["RequestType"] as string) &&
    TEXTS.every((name) => typeof request[name] === "string")
  );
}

/** Whether an event is a direct call. Its manifest is checked later. */
export function isDirectRequest(event: unknown): event is DirectRequest {
  const { action } = Object(event) as Readonly<Record<string, unknown>>;
  return action === "plan" || action === "apply";
}
