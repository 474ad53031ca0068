import { isDeepStrictEqual } from "node:util";
import type { ScriptedChange, StackResource, Target } from "./stack-state.ts";
import {
  NOT_KNOWN_YET,
  presentResources,
  resolveIt,
  type DeclaredResource,
  type Scope,
} from "./template-model.ts";

/** Properties whose change requires a replacement, as each type's documentation says. */
const REPLACING: Readonly<Record<string, readonly string[]>> = {
  "AWS::DynamoDB::Table": ["TableName", "KeySchema", "LocalSecondaryIndexes"],
  "AWS::S3::Bucket": ["BucketName"],
  "AWS::SQS::Queue": ["QueueName", "FifoQueue"],
  "AWS::Lambda::Function": ["FunctionName", "PackageType"],
  "AWS::Lambda::EventSourceMapping": ["EventSourceArn", "StartingPosition"],
  "AWS::IAM::Role": ["RoleName", "Path"],
  "AWS::IAM::ManagedPolicy": ["ManagedPolicyName", "Description", "Path"],
  "AWS::CloudWatch::Alarm": ["AlarmName"],
  "AWS::Logs::LogGroup": ["LogGroupName"],
  "AWS::ApplicationAutoScaling::ScalableTarget": [
    "ResourceId",
    "ScalableDimension",
    "ServiceNamespace",
  ],
  "AWS::ApplicationAutoScaling::ScalingPolicy": ["PolicyName", "ResourceId", "ScalingTargetId"],
};

/** Types that get the tags of their stack. */
const TAGGED: ReadonlySet<string> = new Set([
  "AWS::DynamoDB::Table",
  "AWS::S3::Bucket",
  "AWS::SQS::Queue",
  "AWS::Lambda::Function",
  "AWS::IAM::Role",
  "AWS::Logs::LogGroup",
]);

/** The changes that a change set would make. */
export async function changesBetween(options: {
  readonly resources: ReadonlyMap<string, StackResource>;
  readonly current: Target | undefined;
  readonly target: Target;
  readonly scope: Scope;
  /** Whether a resource that is to be added exists already, and can be imported. */
  readonly imports: (declared: DeclaredResource) => Promise<boolean>;
}): Promise<readonly ScriptedChange[]> {
  const { resources, current, target, scope } = options;
  const wanted = presentResources(scope);
  const tagsDiffer = current !== undefined && !isDeepStrictEqual(current.tags, target.tags);
  const changes: ScriptedChange[] = [];
  // The new id of a replaced resource is not known yet.
  const replaced = new Set<string>();
  const known: Scope = {
    ...scope,
    attribute: (id, name) => (replaced.has(id) ? undefined : scope.attribute(id, name)),
  };
  for (const [logicalId, declared] of wanted) {
    const existing = resources.get(logicalId);
    if (existing === undefined || existing.type !== declared.Type) {
      const action = (await options.imports(declared)) ? "Import" : "Add";
      changes.push({ ...plain(action, logicalId, declared.Type), physicalId: undefined });
      continue;
    }
    const properties = resolveIt(declared.Properties ?? {}, known) as Record<string, unknown>;
    const change = modification(existing, declared, { properties, tagsDiffer });
    if (change?.replacement === "True") replaced.add(logicalId);
    if (change !== undefined) changes.push(change);
  }
  for (const [logicalId, { type, physicalId }] of resources)
    if (wanted.get(logicalId)?.Type !== type)
      changes.push({ ...plain("Remove", logicalId, type), physicalId });
  return changes;
}

function modification(
  existing: StackResource,
  declared: DeclaredResource,
  wanted: { readonly properties: Readonly<Record<string, unknown>>; readonly tagsDiffer: boolean },
): ScriptedChange | undefined {
  const { logicalId, type, physicalId } = existing;
  const names = new Set([...Object.keys(existing.properties), ...Object.keys(wanted.properties)]);
  const causes = [...names]
    .filter((name) => !isDeepStrictEqual(existing.properties[name], wanted.properties[name]))
    .map((name) => ({
      name,
      recreates: !REPLACING[type]?.includes(name)
        ? "Never"
        : isUnknown(wanted.properties[name])
          ? "Conditionally"
          : "Always",
    }));
  const scope: ScriptedChange["scope"][number][] = [];
  if (causes.length > 0) scope.push("Properties");
  if (wanted.tagsDiffer && TAGGED.has(type)) scope.push("Tags");
  for (const policy of ["DeletionPolicy", "UpdateReplacePolicy"] as const)
    if (existing.declared[policy] !== declared[policy]) scope.push(policy);
  if (scope.length === 0) return undefined;
  const replacement = causes.some(({ recreates }) => recreates === "Always")
    ? "True"
    : causes.some(({ recreates }) => recreates === "Conditionally")
      ? "Conditional"
      : "False";
  return { action: "Modify", logicalId, type, physicalId, replacement, scope, causes };
}

function plain(
  action: "Add" | "Remove" | "Import",
  logicalId: string,
  type: string,
): Omit<ScriptedChange, "physicalId"> {
  return { action, logicalId, type, replacement: undefined, scope: [], causes: [] };
}

function isUnknown(value: unknown): boolean {
  return value !== undefined && JSON.stringify(value).includes(NOT_KNOWN_YET);
}
