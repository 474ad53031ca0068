/** Why a part could not be read. */
export interface Unknown {
  /** The reason, as a sentence or a part of one. */
  readonly unknown: string;
}

/** A part of a status: its value, undefined if it does not exist, or why it could not be read. */
export type Seen<T> = T | Unknown | undefined;

/**
 * The status of a stack and of what belongs to it. A part that may not be read, or whose service
 * the endpoint does not have, is `Unknown` and does not affect the others.
 */
export interface StackStatus {
  /** The name of the stack, which is that of its table. */
  readonly stack: string;
  readonly region: string;
  /** The address, if it is not AWS's own. */
  readonly endpointUrl?: string;
  /** What needs attention now; a stack without any is healthy. */
  readonly problems: readonly string[];
  /** What should be looked at, although the stack is healthy. */
  readonly warnings: readonly string[];
  readonly connectivity: Connectivity;
  readonly infrastructure: Seen<StackState>;
  readonly table: Seen<TableState>;
  readonly aggregator: AggregatorStatus;
  readonly versions: Seen<VersionsState>;
  /** The functions that the stack has made; the same for roles and policies. */
  readonly functions: Seen<readonly NamedResource[]>;
  readonly roles: Seen<readonly NamedResource[]>;
  readonly policies: Seen<readonly NamedResource[]>;
}

/** Whether the table answers a client. */
export interface Connectivity {
  readonly reachable: boolean;
  /** How long one read took, on a connection that was open; absent if it did not answer. */
  readonly latencyMs?: number;
  /** Why it is not reachable. */
  readonly reason?: string;
}

/** What CloudFormation says about a stack. */
export interface StackState {
  /** Such as `UPDATE_COMPLETE`. */
  readonly status: string;
  readonly reason?: string;
  /** Whether the tags say that zae-limiter made it. */
  readonly isOurs: boolean;
  readonly createdAt?: Date;
  readonly updatedAt?: Date;
  /** The version that deployed it, of its tags. */
  readonly version?: string;
  readonly lambdaVersion?: string;
  readonly schemaVersion?: string;
  /** Where the tags differ from this client, or from what the table says. */
  readonly drift: readonly string[];
}

/** What DynamoDB says about the table. */
export interface TableState {
  /** Such as `ACTIVE`. */
  readonly status: string;
  /** As DynamoDB last counted them: about every six hours. */
  readonly itemCount?: number;
  readonly sizeBytes?: number;
  readonly billing: "on demand" | "provisioned";
  /** The stream that the aggregator reads; undefined if it is off. */
  readonly streamArn?: string;
  /** The attribute by which items expire; undefined if none do. */
  readonly ttlAttribute: Seen<{ readonly name: string }>;
  /** How many days back the table can be restored; undefined if not at all. */
  readonly pointInTimeRecovery: Seen<{ readonly days?: number }>;
  readonly deletionProtection: boolean;
  /** The status of each index. */
  readonly indexes: Readonly<Record<string, string>>;
}

/**
 * Whether usage is counted.
 *
 * - `enabled`: the function of the stack or a runner has just counted.
 * - `starting`: the stack was just changed, and its function has not counted yet.
 * - `none`: the stack has no function, and no runner has counted for a while.
 * - `broken`: the stack has a function, and usage was not counted for a while.
 * - `unknown`: it could not be read.
 */
export type AggregatorCondition = "enabled" | "starting" | "none" | "broken" | "unknown";

/** Whether usage is counted, and until when it was. */
export interface AggregatorStatus {
  readonly state: AggregatorCondition;
  /** Why it is in this state. */
  readonly reason: string;
  readonly heartbeat: Seen<HeartbeatState>;
}

/** How far usage is counted. */
export interface HeartbeatState {
  readonly countedUntil: Date;
  /** How long ago that was. */
  readonly lagMs: number;
}

/** The versions that have to fit together, and whether they do. */
export interface VersionsState {
  readonly client: string;
  readonly schema?: string;
  readonly lambda?: string;
  /** The oldest client that may use the table. */
  readonly minimumClient?: string;
  readonly compatible: boolean;
  /** What that means, as a sentence. */
  readonly meaning: string;
}

/** A function, role or policy of the stack. */
export interface NamedResource {
  /** Its name in the template, such as `AppRole`. */
  readonly logicalId: string;
  /** Its name, or the ARN of a policy. */
  readonly physicalId: string;
}
