/** Why a part could not be seen. */
export interface Unknown {
  /** The reason, as a sentence or a part of one. */
  readonly unknown: string;
}

/** A part of a status: what was seen, undefined where there is none, or why it was not seen. */
export type Seen<T> = T | Unknown | undefined;

/**
 * Everything that can be seen of a stack and of what belongs to it. What may not be seen, or is no
 * service of the endpoint, is `Unknown` in its own part and leaves the others alone.
 */
export interface StackStatus {
  /** The name of the stack, which is that of its table. */
  readonly stack: string;
  readonly region: string;
  /** The address, if it is not AWS's own. */
  readonly endpointUrl?: string;
  /** What needs somebody's attention now; a stack without any is healthy. */
  readonly problems: readonly string[];
  /** What should be looked at, and does not make the stack unhealthy. */
  readonly warnings: readonly string[];
  readonly connectivity: Connectivity;
  readonly infrastructure: Seen<StackState>;
  readonly table: Seen<TableState>;
  readonly aggregator: AggregatorStatus;
  /** The function that applies declared limits; undefined if there is none. */
  readonly provisioner: Seen<FunctionState>;
  readonly versions: Seen<VersionsState>;
  readonly roles: Seen<readonly NamedResource[]>;
  readonly policies: Seen<readonly NamedResource[]>;
  readonly alarms: Seen<readonly AlarmState[]>;
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
 * Whether usage is summed up.
 *
 * - `enabled`: the function and its event source mapping work, or a runner has just counted.
 * - `starting`: AWS is still preparing the function or the mapping.
 * - `disabled`: somebody switched the mapping off.
 * - `none`: there is no function, and no runner has counted for a while.
 * - `broken`: there is a function, and it does not count; `reason` says why.
 * - `unknown`: it could not be seen.
 */
export type AggregatorCondition =
  | "enabled"
  | "starting"
  | "disabled"
  | "none"
  | "broken"
  | "unknown";

/** The aggregator's real state, and what it was judged by. */
export interface AggregatorStatus {
  readonly state: AggregatorCondition;
  /** Who counts, or why nobody does. */
  readonly reason: string;
  readonly function: Seen<FunctionState>;
  readonly mapping: Seen<MappingState>;
  readonly heartbeat: Seen<HeartbeatState>;
  readonly deadLetters: Seen<DeadLetters>;
}

/** What Lambda says about a function. */
export interface FunctionState {
  readonly name: string;
  /** `Active`, `Pending`, `Inactive` or `Failed`. */
  readonly state: string;
  readonly stateReason?: string;
  /** `Successful`, `InProgress` or `Failed`. */
  readonly lastUpdate?: string;
  readonly lastUpdateReason?: string;
  readonly runtime?: string;
  /** The SHA-256 of the deployed code, in base64 as Lambda shows it. */
  readonly codeSha256?: string;
  readonly modifiedAt?: string;
}

/** What Lambda says about the mapping from the table's stream to the function. */
export interface MappingState {
  readonly id?: string;
  /** `Enabled`, `Disabled`, or on the way to one of them. */
  readonly state: string;
  /** Who changed it last: a user, or Lambda and why. */
  readonly stateReason?: string;
  /** Such as `OK`, or `PROBLEM: …`. */
  readonly lastResult?: string;
  readonly streamArn?: string;
}

/** How far usage is counted, by whomever. */
export interface HeartbeatState {
  readonly countedUntil: Date;
  /** How long ago that was. */
  readonly lagMs: number;
}

/** What the aggregator could not process. */
export interface DeadLetters {
  readonly queue: string;
  /** About how many messages wait. */
  readonly messages: number;
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

/** A role or a policy of the stack. */
export interface NamedResource {
  /** Its name in the template, such as `AppRole`. */
  readonly logicalId: string;
  /** Its name, or the ARN of a policy. */
  readonly physicalId: string;
}

/** An alarm of the stack. */
export interface AlarmState {
  readonly name: string;
  /** `OK`, `ALARM` or `INSUFFICIENT_DATA`. */
  readonly state: string;
  readonly reason?: string;
  readonly since?: Date;
  /** What the alarm is for, as its description says. */
  readonly description?: string;
  /** Whether somebody is told. */
  readonly hasAction: boolean;
}
