import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { ValidationError } from "../../core/errors.ts";
import { configResource, entityId, resourceName } from "../../core/identifiers.ts";
import { parseState, formatState } from "../provisioner-state.ts";
import type { ProvisionerState } from "../repository.ts";
import type { ProvisionerStore } from "../store.ts";
import { hasRevision } from "./items/transact-guarded.ts";
import { namespaceIndexKeys, provisionerKey, provisionerStateKey } from "./items/keys.ts";
import type { Connection, TransactItem } from "./table/connection.ts";
import type { ItemReader } from "./table/item-reader.ts";
import { Aliases } from "./table/aliases.ts";
import {
  marshalItem,
  getString,
  unmarshalItem,
  type AttributeMap,
} from "./transport/attribute-values.ts";

/*
 * The state of declared limits is one compressed attribute of one item. Every guarded write checks
 * the revision, and pays for the whole item that has it, so a small item beside the state has the
 * revision; one transaction writes both.
 */

const [compress, decompress] = [promisify(gzip), promisify(gunzip)];

/**
 * How large a state may be, compressed and in base64. DynamoDB allows 400 KB for an item. Ten
 * thousand similar entities need about a fifth of this.
 */
const MAX_STATE_BYTES = 350 * 1024;

/** What declared limits manage in one namespace. */
export class DynamoProvisioner implements ProvisionerStore {
  readonly #connection: Connection;
  readonly #namespaceId: string;
  readonly #reader: ItemReader;

  constructor(connection: Connection, namespaceId: string, reader: ItemReader) {
    this.#connection = connection;
    this.#namespaceId = namespaceId;
    this.#reader = reader;
  }

  async get(): Promise<ProvisionerState | undefined> {
    const [item, head] = await Promise.all([
      this.#reader.get(provisionerStateKey(this.#namespaceId)),
      this.#reader.get(provisionerKey(this.#namespaceId)),
    ]);
    const compressed = getString(item?.["state"]);
    if (compressed === undefined) return head && parsePythonState(head);
    return parseState(String(await decompress(Buffer.from(compressed, "base64"))));
  }

  async put(state: ProvisionerState, expected: number): Promise<boolean> {
    const compressed = (await compress(formatState(state))).toString("base64");
    if (compressed.length > MAX_STATE_BYTES)
      throw new ValidationError(
        "state",
        undefined,
        `of declared limits has ${Math.ceil(compressed.length / 1024)} KB when it is compressed, and ` +
          `${MAX_STATE_BYTES / 1024} KB can be stored. Declare fewer limits, or divide them among namespaces`,
      );
    const writes = putProvisioner(this.#namespaceId, { state, expected, compressed });
    return (await this.#connection.transact(writes)).applied;
  }
}

/** Stores a state, if the stored revision is the expected one. */
export function putProvisioner(
  namespaceId: string,
  {
    state,
    expected,
    compressed,
  }: {
    readonly state: ProvisionerState;
    readonly expected: number;
    readonly compressed: string;
  },
): readonly TransactItem[] {
  const alias = new Aliases();
  const headKey = provisionerKey(namespaceId);
  const stateKey = provisionerStateKey(namespaceId);
  const head = {
    ...headKey,
    ...namespaceIndexKeys(namespaceId, headKey),
    revision: state.revision,
    last_applied: state.lastApplied?.toISOString(),
    applied_hash: state.appliedHash,
  };
  const item = { ...stateKey, ...namespaceIndexKeys(namespaceId, stateKey), state: compressed };
  return [
    {
      Put: {
        Item: marshalItem(head),
        ConditionExpression: hasRevision(alias, expected),
        ...alias.fields(),
      },
    },
    { Put: { Item: marshalItem(item) } },
  ];
}

/** The state of an item that an upgrade from Python has left. */
function parsePythonState(item: AttributeMap): ProvisionerState {
  const stored = unmarshalItem(item);
  const lastApplied = stored["last_applied"];
  const appliedHash = stored["applied_hash"];
  const managedEntities = (stored["managed_entities"] ?? {}) as ProvisionerState["managedEntities"];
  const entities = Object.entries(managedEntities).filter(([id]) => isAccepted(entityId, id));
  return {
    managedSystem: stored["managed_system"] === true,
    managedResources: ((stored["managed_resources"] ?? []) as readonly string[]).filter((name) =>
      isAccepted(resourceName, name),
    ),
    managedEntities: Object.fromEntries(
      entities.map(([id, names]) => [id, names.filter((name) => isAccepted(configResource, name))]),
    ),
    lastApplied: typeof lastApplied === "string" ? new Date(lastApplied) : undefined,
    appliedHash: typeof appliedHash === "string" ? appliedHash : undefined,
    revision: Number(stored["revision"] ?? 0),
  };
}

/**
 * The Python zae-limiter checked no names. Nothing can be read or stored under one that we refuse,
 * so nothing is managed there: otherwise every plan would fail.
 */
function isAccepted(check: (name: unknown) => string, name: string): boolean {
  try {
    check(name);
    return true;
  } catch (error) {
    if (error instanceof ValidationError) return false;
    throw error;
  }
}
