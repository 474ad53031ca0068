import { ApplyConflictError } from "../../../core/errors.ts";
import type { Guard } from "../../store.ts";
import { marshalKey } from "../table/batch.ts";
import type { Connection, Transacted, TransactItem } from "../table/connection.ts";
import { Aliases } from "../table/aliases.ts";
import { provisionerKey } from "./keys.ts";

/**
 * Sends a transaction that is cancelled unless the state of declared limits has the revision of the
 * guard. The check is the last item, so that the reasons of the others keep their places. Without
 * writes, only the revision is checked.
 */
export async function transactGuarded(
  connection: Connection,
  namespaceId: string,
  writes: readonly TransactItem[],
  { ifRevision }: Guard,
): Promise<Transacted> {
  if (ifRevision === undefined)
    return writes.length === 0 ? { applied: true } : connection.transact(writes);
  const check = revisionCheck(namespaceId, ifRevision);
  const outcome = await connection.transact([...writes, check]);
  if (!outcome.applied && outcome.reasons[writes.length]?.code === "ConditionalCheckFailed")
    throw new ApplyConflictError(ifRevision);
  return outcome;
}

/** Fails a transaction unless the state of declared limits has a revision. */
export function revisionCheck(namespaceId: string, revision: number): TransactItem {
  const alias = new Aliases();
  return {
    ConditionCheck: {
      Key: marshalKey(provisionerKey(namespaceId)),
      ConditionExpression: hasRevision(alias, revision),
      ...alias.fields(),
    },
  };
}

/** Holds if the state has a revision; 0 also if there is no state, or one without a revision. */
export function hasRevision(alias: Aliases, revision: number): string {
  const name = alias.name("revision");
  const same = `${name} = ${alias.value(revision)}`;
  return revision === 0 ? `attribute_not_exists(${name}) OR ${same}` : same;
}
