import { InfrastructureNotFoundError, NamespaceNotFoundError } from "../../core/errors.ts";
import { DEFAULT_NAMESPACE, newNamespaceId } from "../../core/namespace.ts";
import { VERSION } from "../../core/version.ts";
import type { VersionRecord } from "../repository.ts";
import { wholeMs } from "../system-clock.ts";
import { checkLambda } from "./check-lambda.ts";
import type { DynamoStore } from "./dynamo-store.ts";
import { isOlderVersion } from "./items/compatibility.ts";
import { assertCompatible, LOST_VERSION } from "./items/schema-version.ts";
import type { OpenedConnection } from "./opening/open-connection.ts";
import type { StackOptions } from "./opening/stack-options.ts";
import type { StackAccess } from "./opening/stack-tools.ts";
import { howToCreate, howToReplace } from "./opening/url.ts";
import { createTable } from "./table/create-table.ts";

/** What a namespace is opened with. */
export interface Opening extends OpenedConnection {
  readonly store: DynamoStore;
  readonly stack: StackAccess;
  readonly stackOptions: StackOptions;
  /** Whether a namespace of that name is registered where it is missing. */
  readonly registers: (name: string) => boolean;
}

/**
 * Creates what is missing and may be created, checks that this library can use the table, and finds
 * the id of the namespace; undefined if it is not registered, and must not be.
 */
export async function openNamespace(opening: Opening): Promise<string | undefined> {
  return findNamespace(opening, await openTable(opening));
}

/**
 * Finds a namespace again in a table that was gone. What may be registered at first is registered
 * again; but no table is created, because it may have been deleted on purpose.
 */
export async function reopenNamespace(opening: Opening, name: string): Promise<string> {
  const { store, resolved, registers } = opening;
  const again = {
    ...opening,
    // A program that is running goes on, whatever Lambda came with the new table.
    resolved: { ...resolved, namespace: name, lambda: "ignore" as const },
    registers: (each: string) => each === resolved.namespace && registers(each),
  };
  const found = await findNamespace(again, { isNew: false, record: await readFirst(store) });
  if (found === undefined) throw new NamespaceNotFoundError(name);
  return found;
}

async function findNamespace(
  { store, connection, resolved, region, stack, registers }: Opening,
  { isNew, record }: OpenedTable,
): Promise<string | undefined> {
  const { namespace, provisioning } = resolved;
  const nowMs = wholeMs(connection.clock);
  assertCompatible(record);
  if (record === undefined) await assertNew(store, namespace);
  if (resolved.updateLambda && isLambdaOlder(record)) await stack.updateLambda();
  else checkLambda(record, { ...resolved, region });
  if (provisioning === "never") return (await store.namespaces.byName(namespace))?.namespaceId;
  const newId = (): string => newNamespaceId(connection.random);
  const register = async (name: string): Promise<string> =>
    (await store.namespaces.register(name, newId, nowMs)).namespaceId;
  // Every table has this namespace: tools expect it.
  if (isNew && namespace !== DEFAULT_NAMESPACE) await register(DEFAULT_NAMESPACE);
  if (isNew || registers(namespace)) return register(namespace);
  return (await store.namespaces.byName(namespace))?.namespaceId;
}

interface OpenedTable {
  /** Whether this process created it, or waited while another did. */
  readonly isNew: boolean;
  readonly record: VersionRecord | undefined;
}

/**
 * Reads the version record, which shows whether there is a table. One that exists costs a request,
 * and CloudFormation is never asked about it.
 */
async function openTable(opening: Opening): Promise<OpenedTable> {
  const { store, connection, resolved, region, stack, stackOptions } = opening;
  const place = { ...resolved, region };
  const isNew = resolved.provisioning === "table" && (await createTable(connection, resolved));
  try {
    return { isNew, record: await readFirst(store) };
  } catch (error) {
    if (!(error instanceof InfrastructureNotFoundError)) throw error;
    if (!stack.mayDeploy)
      throw new InfrastructureNotFoundError(howToCreate(place), { cause: error });
  }
  await stack.ensure(stackOptions);
  try {
    return { isNew: true, record: await readFirst(store) };
  } catch (error) {
    if (!(error instanceof InfrastructureNotFoundError)) throw error;
    throw new InfrastructureNotFoundError(howToReplace(place), { cause: error });
  }
}

/** Reads the version record, and whether usage is counted, in one request. */
async function readFirst({ versions, heartbeat }: DynamoStore): Promise<VersionRecord | undefined> {
  const [record] = await Promise.all([versions.get(), heartbeat.read()]);
  return record;
}

/**
 * A table without a version record is new, unless it has namespaces: the record is written before
 * the first namespace, so then the items belong to something unknown.
 */
async function assertNew({ versions, namespaces }: DynamoStore, namespace: string): Promise<void> {
  const names = [...new Set([namespace, DEFAULT_NAMESPACE])];
  const found = await Promise.all(names.map((name) => namespaces.byName(name)));
  if (found.every((info) => info === undefined)) return;
  // Another process may have opened the new table meanwhile.
  assertCompatible((await versions.get()) ?? LOST_VERSION);
}

function isLambdaOlder(record: VersionRecord | undefined): boolean {
  return record?.lambdaVersion !== undefined && isOlderVersion(record.lambdaVersion, VERSION);
}
