import type { NamespaceStatus } from "./namespace.ts";

/**
 * The base of every error that this library throws on purpose. `code` is stable; messages may
 * change, and never contain the credentials of an address.
 */
export class ZaeLimiterError extends Error {
  /** Stable, such as `ERR_LIMITER_VALIDATION`; the guide's page on errors lists them all. */
  readonly code: string;

  constructor(code: string, message?: string, options?: ErrorOptions) {
    super(message && withoutCredentials(message), options);
    this.code = code;
    this.name = new.target.name;
  }
}

/** The base of errors about limits and leases. */
export class RateLimitError extends ZaeLimiterError {}

/** A lease was used after it was committed or rolled back. */
export class LeaseExpiredError extends RateLimitError {
  constructor(state: "committed" | "rolled back") {
    const advice =
      state === "committed"
        ? "Did the function return before its work was done? Await all of it there, or acquire a new lease."
        : "Acquire a new one.";
    super("ERR_LIMITER_LEASE_EXPIRED", `This lease was already ${state}. ${advice}`);
  }
}

/** The base of errors about the store behind the limiter. */
export class InfrastructureError extends ZaeLimiterError {}

/**
 * The store could not be reached, or was overloaded or contended. `onUnavailable` acts on this
 * error and on no other.
 */
export class RateLimiterUnavailable extends InfrastructureError {
  /** The entity of the call; undefined outside of calls on one entity. */
  readonly entityId: string | undefined;
  /** The resource of the call; undefined outside of calls on one resource. */
  readonly resource: string | undefined;
  /** The stack that could not be reached; undefined on other backends. */
  readonly stackName: string | undefined;

  constructor(
    message: string,
    options: ErrorOptions & {
      readonly entityId?: string;
      readonly resource?: string;
      readonly stackName?: string;
    } = {},
  ) {
    const { entityId, resource, stackName } = options;
    const where = [
      stackName && `stack=${stackName}`,
      entityId && `entity=${entityId}`,
      resource && `resource=${resource}`,
    ]
      .filter(Boolean)
      .join(", ");
    super("ERR_LIMITER_UNAVAILABLE", where ? `${message} [${where}]` : message, toCause(options));
    this.entityId = entityId;
    this.resource = resource;
    this.stackName = stackName;
  }
}

/**
 * The store denied access, or there are no valid credentials to ask it with, which has a code of
 * its own. `onUnavailable: "allow"` never lets such a call through.
 */
export class PermissionDenied extends InfrastructureError {
  constructor(message: string, options?: ErrorOptions, code = "ERR_LIMITER_PERMISSION_DENIED") {
    super(code, message, options);
  }
}

/** A CloudFormation stack operation failed. */
export class StackOperationError extends InfrastructureError {
  /** The stack that the operation was about. */
  readonly stackName: string;
  /** Why it failed, in the words of CloudFormation. */
  readonly reason: string;
  /** The failed events of the operation, oldest first; may be empty. */
  readonly events: readonly string[];

  constructor(stackName: string, reason: string, events: readonly string[] = []) {
    super("ERR_LIMITER_STACK_OPERATION", `Stack ${stackName}: ${reason}`);
    this.stackName = stackName;
    this.reason = reason;
    this.events = events;
  }
}

/** A stack with that name already exists. */
export class StackAlreadyExistsError extends InfrastructureError {
  /** The name that is taken. */
  readonly stackName: string;

  constructor(stackName: string) {
    super(
      "ERR_LIMITER_STACK_EXISTS",
      `Stack ${stackName} already exists. Choose another name, or upgrade it.`,
    );
    this.stackName = stackName;
  }
}

/** The table, file or stack that should hold the data does not exist. */
export class InfrastructureNotFoundError extends InfrastructureError {
  constructor(message: string, options?: ErrorOptions) {
    super("ERR_LIMITER_INFRASTRUCTURE_NOT_FOUND", message, options);
  }
}

/** No active namespace has that name or id. */
export class NamespaceNotFoundError extends InfrastructureError {
  /** The name or id that was not found. */
  readonly namespaceName: string;

  constructor(namespaceName: string) {
    super(
      "ERR_LIMITER_NAMESPACE_NOT_FOUND",
      `Namespace ${namespaceName} does not exist. Register it first, or check the spelling.`,
    );
    this.namespaceName = namespaceName;
  }
}

/** The namespace is in a state that does not allow the operation. */
export class NamespaceStateError extends InfrastructureError {
  /** The name of the namespace. */
  readonly namespaceName: string;
  /** The state that it is in. */
  readonly state: NamespaceStatus;

  constructor(namespaceName: string, state: NamespaceStatus, reason: string) {
    super("ERR_LIMITER_NAMESPACE_STATE", `Namespace ${namespaceName} is ${state}: ${reason}`);
    this.namespaceName = namespaceName;
    this.state = state;
  }
}

/** The base of errors about one entity. */
export class EntityError extends ZaeLimiterError {
  /** The entity that the error is about. */
  readonly entityId: string;

  constructor(code: string, entityId: string, message: string) {
    super(code, message);
    this.entityId = entityId;
  }
}

/** There is no entity with that id. */
export class EntityNotFoundError extends EntityError {
  constructor(entityId: string) {
    super(
      "ERR_LIMITER_ENTITY_NOT_FOUND",
      entityId,
      `Entity ${entityId} does not exist. Create it first, or check the spelling.`,
    );
  }
}

/** An entity with that id already exists. */
export class EntityExistsError extends EntityError {
  constructor(entityId: string) {
    super(
      "ERR_LIMITER_ENTITY_EXISTS",
      entityId,
      `Entity ${entityId} already exists. Choose another id, or delete that entity first.`,
    );
  }
}

interface Versions {
  readonly clientVersion: string;
  readonly schemaVersion: string;
  readonly lambdaVersion?: string | undefined;
}

/** The base of errors about incompatible versions. */
export class VersionError extends ZaeLimiterError {
  /** The version of this library. */
  readonly clientVersion: string;
  /** The version of the stored data. */
  readonly schemaVersion: string;
  /** The version of the deployed Lambda; undefined if there is none. */
  readonly lambdaVersion: string | undefined;

  constructor(code: string, message: string, versions: Versions) {
    super(code, message);
    this.clientVersion = versions.clientVersion;
    this.schemaVersion = versions.schemaVersion;
    this.lambdaVersion = versions.lambdaVersion;
  }
}

/** The versions of client, schema and Lambda do not match, but can be brought in line. */
export class VersionMismatchError extends VersionError {
  /** Whether the deployed parts can be updated without losing data. */
  readonly canAutoUpdate: boolean;

  constructor(message: string, versions: Versions & { readonly canAutoUpdate: boolean }) {
    super("ERR_LIMITER_VERSION_MISMATCH", message, versions);
    this.canAutoUpdate = versions.canAutoUpdate;
  }
}

/** The stored data is in a format that this version does not support. */
export class IncompatibleSchemaError extends VersionError {
  /** Where the migration is described, if anywhere. */
  readonly migrationGuideUrl: string | undefined;

  constructor(message: string, versions: Versions & { readonly migrationGuideUrl?: string }) {
    super("ERR_LIMITER_INCOMPATIBLE_SCHEMA", message, versions);
    this.migrationGuideUrl = versions.migrationGuideUrl;
  }
}

/** The most characters of an invalid value that an error repeats. */
const VALUE_LENGTH = 50;

/** The most characters of a field. Valid names are shorter, including those of metadata. */
const FIELD_LENGTH = 200;

/** Input was invalid; nothing was written. The message ends with the value, if that helps. */
export class ValidationError extends ZaeLimiterError {
  /** What was invalid: an argument or an option, such as `consume.rpm`; escaped, and cut. */
  readonly field: string;
  /** The invalid value as text, cut to 50 characters. */
  readonly value: string;
  /** What is wrong with it, without the field's name: "must not be negative". */
  readonly reason: string;

  constructor(field: string, value: unknown, reason: string, code = "ERR_LIMITER_VALIDATION") {
    const text = describeValue(field === "endpointUrl" ? withoutUser(value) : value);
    const says = field.split(".").at(-1) === text || reason.includes(`'${text}'`);
    const shown = formatField(field);
    super(code, `Invalid ${shown}: ${reason}${says ? "" : quoteValue(value, text)}`);
    this.field = shown;
    this.value = text;
    this.reason = reason;
  }
}

/** An entity id, parent id or principal is invalid. */
export class InvalidIdentifierError extends ValidationError {
  constructor(field: string, value: unknown, reason: string) {
    super(field, value, reason, "ERR_LIMITER_INVALID_IDENTIFIER");
  }
}

/** The name of a limit, resource or namespace is invalid. */
export class InvalidNameError extends ValidationError {
  constructor(field: string, value: unknown, reason: string) {
    super(field, value, reason, "ERR_LIMITER_INVALID_NAME");
  }
}

/**
 * The state of declared limits is not at the revision that the caller read: another apply has
 * started or ended since. This call changed nothing.
 */
export class ApplyConflictError extends ValidationError {
  constructor(revision: number) {
    super(
      "revision",
      revision,
      "limits were applied since this state was read; read it again and re-plan",
      "ERR_LIMITER_APPLY_CONFLICT",
    );
  }
}

function toCause(options: ErrorOptions): ErrorOptions | undefined {
  return "cause" in options ? { cause: options.cause } : undefined;
}

/** A field may be named after input that the application received. */
function formatField(field: string): string {
  return escapeControls(field.length > FIELD_LENGTH ? `${field.slice(0, FIELD_LENGTH)}…` : field);
}

/** What a message says about a value; empty if the value's text would not help. */
function quoteValue(value: unknown, text: string): string {
  if (typeof value === "string") return ` (got '${escapeControls(text)}')`;
  const isPlain =
    typeof value === "object"
      ? value !== null && isPlainObject(value)
      : typeof value === "number" || typeof value === "boolean" || typeof value === "bigint";
  return isPlain ? ` (got ${escapeControls(text)})` : "";
}

/** A proxy may throw even here. */
function isPlainObject(value: object): boolean {
  try {
    return Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
  } catch {
    return false;
  }
}

/** Control and format characters could hide or forge what a terminal or a log shows. */
export function escapeControls(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`,
  );
}

/** What follows the scheme of an address, which may be encoded as part of another one. */
const AFTER_SCHEME = /(:|%3A)(\/|%2F){2}/i;

/** The URL of a repository, up to the address of its endpoint. */
const BEFORE_ENDPOINT = /^[^:]*dynamodb:\/\/[^@]*?[?&]endpoint=/;

/**
 * Hides the user and the password of every address in a text, for messages and logs.
 * @example console.log(withoutCredentials(`Opened ${process.env["ZAEL_REPOSITORY"]}.`));
 */
export function withoutCredentials(text: string): string {
  return AFTER_SCHEME.test(text) ? text.replaceAll(/\S+/g, hideCredentials) : text;
}

/**
 * Hides what an address says before its host. No regular expression does it in one pass, and the
 * text, which may be input to the application, can be of any length.
 */
function hideCredentials(text: string): string {
  const start = BEFORE_ENDPOINT.exec(text)?.[0].length ?? 0;
  const address = text.slice(start);
  const scheme = AFTER_SCHEME.exec(address);
  if (scheme === null) return text;
  const begin = scheme.index + scheme[0].length;
  const encodedHost = scheme[1] === ":" ? -1 : address.lastIndexOf("%40");
  const host = Math.max(address.lastIndexOf("@"), encodedHost);
  // Without a colon, what has a slash is a path, as in https://host/@scope/name.
  const isPath = /^[^:%]*\//.test(address.slice(begin, host));
  return host < begin || isPath ? text : `${text.slice(0, start + begin)}***${address.slice(host)}`;
}

/** What should be an address: a mistyped one may have no scheme before its user and password. */
function withoutUser(value: unknown): unknown {
  return typeof value === "string" ? value.replace(/^(.*\/\/)?.*@/s, "$1***@") : value;
}

/** Names under which secrets are passed, such as `secretAccessKey` or `sessionToken`. */
const SECRET_NAME = /secret|password|token|key$/i;

/** Numbers are amounts: a limit may well be called `tokens`. */
function withoutSecret(name: string, value: unknown): unknown {
  return typeof value === "string" && SECRET_NAME.test(name) ? "***" : value;
}

/** The beginning of a value's text, without secrets. Never throws, whatever the value is. */
function describeValue(value: unknown): string {
  try {
    const text =
      typeof value === "object" && value !== null
        ? (JSON.stringify(value, withoutSecret) ?? "object")
        : String(value);
    return hideCredentials(text).slice(0, VALUE_LENGTH);
  } catch {
    return typeof value;
  }
}

/**
 * Makes an error without a stack trace, for expected outcomes: capturing a trace costs more than
 * the decision that the error reports.
 */
export function withoutStack<E extends Error>(make: () => E): E {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return make();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
