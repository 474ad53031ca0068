/** The versions of a table and of what works on it. */
export interface TableVersions {
  /** The version of this library. */
  readonly clientVersion: string;
  /** The version of the stored items; undefined when the table has no version record. */
  readonly schemaVersion: string | undefined;
  /** The version of the deployed Lambda; undefined if there is none. */
  readonly lambdaVersion: string | undefined;
  /** The oldest client that may use the table. */
  readonly clientMinVersion: string | undefined;
}

/** Whether a client may use a table, or what is in its way. */
export type CompatibilityState =
  | "compatible"
  /** The table has no version record. */
  | "not initialised"
  /** The items are of an older schema, or an upgrade was started and not finished. */
  | "upgrade needed"
  /** The items are of a schema that this library does not know yet. */
  | "schema too new"
  /** The table requires a newer client. */
  | "client too old"
  /** A version in the record cannot be read, so nothing can be concluded from it. */
  | "unreadable";

/** How the deployed Lambda relates to the client. */
export type LambdaState = "none" | "same" | "older" | "newer" | "unreadable";

/** How the versions of a table fit together. */
export interface Compatibility {
  /** Whether this library may use the table, or what is in its way. */
  readonly state: CompatibilityState;
  /** How the deployed Lambda relates to this library. */
  readonly lambda: LambdaState;
  /** What follows from it, in sentences. */
  readonly message: string;
}

/** The version of the items that this library writes. */
export const SCHEMA_VERSION = "1.0.0";

/**
 * What the record says while items are upgraded. It is older than the schema, so this library does
 * not open the table; and its major version is not 0, so no Python zae-limiter opens it (ADR 017).
 */
export const UPGRADING_VERSION = `${SCHEMA_VERSION}-upgrading`;

/**
 * Judges the versions of a table. The schema comes first: `clientMinVersion` of a table that the
 * Python zae-limiter wrote counts versions of that library, which say nothing about this one.
 */
export function judgeCompatibility(versions: TableVersions): Compatibility {
  const { state, message } = tableState(versions);
  const lambda = lambdaState(versions);
  const advice = state === "compatible" ? lambdaAdvice(lambda, versions) : "";
  return { state, lambda, message: advice === "" ? message : `${message} ${advice}` };
}

function tableState(versions: TableVersions): Omit<Compatibility, "lambda"> {
  const { clientVersion, schemaVersion, clientMinVersion = "0.0.0" } = versions;
  if (schemaVersion === undefined)
    return {
      state: "not initialised",
      message: "The table has no version record: no zae-limiter has opened it yet.",
    };
  const [schema, own] = [parseVersion(schemaVersion), parseVersion(SCHEMA_VERSION)!];
  if (schema === undefined) return unreadable("schema version", schemaVersion);
  if (schema.numbers[0]! > own.numbers[0]!)
    return {
      state: "schema too new",
      message:
        `The table has schema ${schemaVersion}, but this version of zae-limiter supports only ` +
        `${SCHEMA_VERSION}. Upgrade zae-limiter.`,
    };
  if (isBefore(schema, own))
    return { state: "upgrade needed", message: upgradeText(schemaVersion) };
  const [least, client] = [parseVersion(clientMinVersion), parseVersion(clientVersion)];
  if (least === undefined) return unreadable("minimum client version", clientMinVersion);
  if (client === undefined) return unreadable("client version", clientVersion);
  // A pre-release of a client counts as its release.
  if (compareNumbers(client.numbers, least.numbers) < 0)
    return {
      state: "client too old",
      message:
        `The table requires version ${clientMinVersion} or newer of zae-limiter; ` +
        `this is ${clientVersion}. Upgrade zae-limiter.`,
    };
  return {
    state: "compatible",
    message: `The table has schema ${schemaVersion}, which this version of zae-limiter supports.`,
  };
}

function upgradeText(schemaVersion: string): string {
  return schemaVersion === UPGRADING_VERSION
    ? "An upgrade of this table was begun and is not finished. To continue it: zae-limiter upgrade"
    : `The table has schema ${schemaVersion}, which this version of zae-limiter does not read; ` +
        `it needs ${SCHEMA_VERSION}. To upgrade the table: zae-limiter upgrade`;
}

function unreadable(what: string, version: string): Omit<Compatibility, "lambda"> {
  return {
    state: "unreadable",
    message:
      `The ${what} '${version.slice(0, 40)}' cannot be read as a version such as 1.2.3. ` +
      "Repair the version record of the table.",
  };
}

function lambdaState({ clientVersion, lambdaVersion }: TableVersions): LambdaState {
  if (lambdaVersion === undefined) return "none";
  const [lambda, client] = [parseVersion(lambdaVersion), parseVersion(clientVersion)];
  if (lambda === undefined || client === undefined) return "unreadable";
  const order = compareNumbers(lambda.numbers, client.numbers);
  return order === 0 ? "same" : order < 0 ? "older" : "newer";
}

function lambdaAdvice(state: LambdaState, { clientVersion, lambdaVersion }: TableVersions): string {
  switch (state) {
    case "older":
    case "unreadable":
      return (
        `The Lambda has version ${lambdaVersion}, this client ${clientVersion}. ` +
        "To update the Lambda: zae-limiter upgrade --lambda-only"
      );
    case "newer":
      return (
        `The Lambda has version ${lambdaVersion}, this client only ${clientVersion}. ` +
        "Upgrade this client when you can; until then both work."
      );
    default:
      return "";
  }
}

interface Version {
  readonly numbers: readonly number[];
  readonly isPreRelease: boolean;
}

/** Reads a semantic version; undefined when it is none. */
function parseVersion(version: string): Version | undefined {
  const match = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})(-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/.exec(
    version,
  );
  if (match === null) return undefined;
  return { numbers: match.slice(1, 4).map(Number), isPreRelease: match[4] !== undefined };
}

function isBefore(left: Version, right: Version): boolean {
  const order = compareNumbers(left.numbers, right.numbers);
  return order < 0 || (order === 0 && left.isPreRelease && !right.isPreRelease);
}

function compareNumbers(left: readonly number[], right: readonly number[]): number {
  const index = left.findIndex((number, position) => number !== right[position]);
  return index < 0 ? 0 : left[index]! - right[index]!;
}

/** Whether a version is before another; an unreadable one is before none. */
export function isOlderVersion(version: string, than: string): boolean {
  const [left, right] = [parseVersion(version), parseVersion(than)];
  return left !== undefined && right !== undefined && isBefore(left, right);
}
