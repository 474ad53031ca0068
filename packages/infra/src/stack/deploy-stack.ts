import type { StackOptions } from "zae-limiter/dynamodb";
import type { StackPlace } from "../aws/place.ts";

/** One change that a change set would make. */
export interface ResourceChange {
  readonly action: "add" | "modify" | "replace" | "remove" | "replace-if";
  readonly logicalId: string;
  readonly resourceType: string;
  readonly physicalId: string | undefined;
  /** What causes the change: names of properties, parameters or tags. */
  readonly because: readonly string[];
}

/** Something that happened to a stack. */
export interface StackEvent {
  readonly at: Date;
  readonly logicalId: string;
  readonly resourceType: string;
  readonly status: string;
  readonly reason: string | undefined;
}

/** How a stack is deployed. */
export interface DeployOptions extends StackPlace {
  /** Options of the stack; what is left out keeps the value that the stack has, or the default. */
  readonly stackOptions?: StackOptions;
  /** The bucket that holds the code of the functions. @default one of the account's, made if needed */
  readonly codeBucket?: string;
  /** Asked before anything is changed. @default only additions and changes in place go on */
  readonly confirm?: (changes: readonly ResourceChange[]) => boolean | Promise<boolean>;
  /** Called for each event of the stack. */
  readonly onEvent?: (event: StackEvent) => void;
  /** Whether to wait until the stack is ready. @default true */
  readonly wait?: boolean;
}

/** What a deployment did. */
export interface DeployReport {
  readonly stack: string;
  readonly region: string;
  readonly outcome: "created" | "updated" | "unchanged" | "started" | "declined";
  readonly changes: readonly ResourceChange[];
  readonly outputs: Readonly<Record<string, string>>;
}

/** Creates a stack, or updates the one that exists, by a change set. */
export async function deployStack(_options: DeployOptions = {}): Promise<DeployReport> {
  throw new Error("not built yet");
}
