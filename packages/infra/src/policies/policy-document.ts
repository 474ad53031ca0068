import type { Value } from "../cloudformation/template.ts";
import { allow, below, type PolicyStatement } from "./policy-statements.ts";

/*
 * What each kind of program may do with the table. The kinds differ in two ways: in what they do,
 * and in whose items they may touch.
 *
 *                acquire           read-only         full-access
 *   all          table, by key     table, indexes    table, indexes
 *   a tenant     {id}/… and, read by key, _/SYSTEM#; index partitions {id}/… and {id}
 *
 * A tenant is a namespace. IAM compares partition keys ("leading keys") and nothing else of a key,
 * and every partition key, in the table and in its indexes, begins with the id of its namespace.
 * The id comes from a tag of the principal, which the principal itself cannot change.
 *
 * Nothing here allows Scan or the stream: those carry no key that could be compared.
 * TransactWriteItems is not an action of IAM: it asks for the action of each of its members. Nor is
 * BatchExecuteStatement, in which calls share a request: it asks for PartiQLUpdate, for each
 * statement by its own partition key. Other PartiQL is neither sent nor allowed.
 */

/** Whose policy: of programs that acquire, that manage, or that only read; of all or one tenant. */
export type PolicyKind =
  | "acquire-only"
  | "full-access"
  | "read-only"
  | "namespace-acquire"
  | "namespace-full-access"
  | "namespace-read-only";

/** Every kind of policy. */
export const POLICY_KINDS: readonly PolicyKind[] = [
  "acquire-only",
  "full-access",
  "read-only",
  "namespace-acquire",
  "namespace-full-access",
  "namespace-read-only",
];

/** A policy as IAM reads it. */
export type PolicyDocument = {
  readonly Version: "2012-10-17";
  readonly Statement: readonly PolicyStatement[];
};

/** The tag of a principal that names its tenant, by the id of the namespace. */
export const NAMESPACE_TAG = "zael_namespace_id";

/**
 * The policy of a kind, for the table with this ARN: a text, or a function of the template.
 * @example policyDocument("acquire-only", "arn:aws:dynamodb:eu-west-1:111122223333:table/limits");
 */
export function policyDocument(kind: PolicyKind, tableArn: Value): PolicyDocument {
  return { Version: "2012-10-17", Statement: STATEMENTS[kind](tableArn) };
}

const STATEMENTS: Readonly<Record<PolicyKind, (tableArn: Value) => readonly PolicyStatement[]>> = {
  "acquire-only": (tableArn) => acquireStatements(tableArn, "*"),
  "read-only": readStatements,
  "full-access": (tableArn) => [
    ...readStatements(tableArn),
    allow({ sid: "Write", actions: [...WRITES, BATCH_WRITE], resources: tableArn }),
  ],
  "namespace-acquire": (tableArn) => acquireStatements(tableArn, TENANT).map(ofTenant),
  "namespace-read-only": (tableArn) => readOwnStatements(tableArn).map(ofTenant),
  "namespace-full-access": (tableArn) =>
    [
      ...readOwnStatements(tableArn),
      allow({ sid: "Write", actions: WRITES, resources: tableArn, keys: [`${TENANT}/*`] }),
      allow({
        sid: "DeleteEntities",
        actions: [BATCH_WRITE],
        resources: tableArn,
        keys: ["BUCKET", "ENTITY", "AUDIT"].map((kind) => `${TENANT}/${kind}#*`),
      }),
    ].map(ofTenant),
};

const READS_BY_KEY = ["dynamodb:GetItem", "dynamodb:BatchGetItem"];

/**
 * A bucket is created, written alone or in a shared request, split and merged; a merge deletes one
 * of the halves.
 */
const BUCKET_WRITES = [
  "dynamodb:PutItem",
  "dynamodb:UpdateItem",
  "dynamodb:PartiQLUpdate",
  "dynamodb:DeleteItem",
];

const WRITES = [...BUCKET_WRITES, "dynamodb:ConditionCheckItem"];

/** How entities are deleted, and namespaces purged. */
const BATCH_WRITE = "dynamodb:BatchWriteItem";

/** What `zae-limiter status` reads of the table. */
const DESCRIBES = [
  "dynamodb:DescribeTable",
  "dynamodb:DescribeTimeToLive",
  "dynamodb:DescribeContinuousBackups",
];

const TENANT = `\${aws:PrincipalTag/${NAMESPACE_TAG}}`;

/** The partition of namespaces by name and id, of the version and of the heartbeat. */
const REGISTRY = "_/SYSTEM#";

/** Reads what a decision depends on, and writes buckets only. Audit events are neither. */
function acquireStatements(tableArn: Value, namespaceId: string): readonly PolicyStatement[] {
  const buckets = `${namespaceId}/BUCKET#*`;
  return [
    allow({
      sid: "ReadByKey",
      actions: READS_BY_KEY,
      resources: tableArn,
      keys: [
        buckets,
        `${namespaceId}/ENTITY#*`,
        `${namespaceId}/RESOURCE#*`,
        `${namespaceId}/SYSTEM#`,
        // One batch reads a bucket and the state of its namespace.
        ...(namespaceId === TENANT ? [REGISTRY] : []),
      ],
    }),
    allow({
      sid: "WriteBuckets",
      actions: BUCKET_WRITES,
      resources: tableArn,
      keys: [buckets],
    }),
  ];
}

function readStatements(tableArn: Value): readonly PolicyStatement[] {
  return [
    allow({
      sid: "Read",
      actions: [...READS_BY_KEY, "dynamodb:Query"],
      resources: [tableArn, below(tableArn, "index/*")],
    }),
    allow({ sid: "Describe", actions: DESCRIBES, resources: tableArn }),
  ];
}

/**
 * The registry is read by key and never queried: a tenant finds its own namespace by name, and can
 * list no others.
 */
function readOwnStatements(tableArn: Value): readonly PolicyStatement[] {
  return [
    allow({
      sid: "ReadByKey",
      actions: READS_BY_KEY,
      resources: tableArn,
      keys: [`${TENANT}/*`, REGISTRY],
    }),
    allow({
      sid: "Query",
      actions: ["dynamodb:Query"],
      resources: [tableArn, below(tableArn, "index/*")],
      // GSI4 has the id itself as its partition; nothing else has.
      keys: [`${TENANT}/*`, TENANT],
    }),
  ];
}

/**
 * Requires a tag that can be the id of a tenant: two characters at least, where real ids have
 * eleven. Without a tag nothing is allowed; with an empty one the patterns would begin with a
 * slash, and with `_` they would be those of the registry. A tag cannot be a pattern itself: IAM
 * and STS allow neither `*` nor `?` in tags, and no `#`, which every key has after its slash.
 */
function ofTenant(statement: PolicyStatement): PolicyStatement {
  return {
    ...statement,
    Condition: {
      ...(statement["Condition"] as { readonly [operator: string]: Value }),
      StringLike: { [`aws:PrincipalTag/${NAMESPACE_TAG}`]: "??*" },
    },
  };
}
