import { createHash } from "node:crypto";
import type { ResourceRequest } from "./request.ts";

/** Stands for the namespace of a resource that names none; no namespace has this name. */
const NO_NAMESPACE = "-";

/**
 * The physical id of the resource that owns the declared limits of a namespace. It stays the same
 * while stack, logical id and namespace do; if one of them changes, it is another resource, and
 * CloudFormation deletes the earlier one.
 */
export function physicalId(
  { StackId, LogicalResourceId }: Pick<ResourceRequest, "StackId" | "LogicalResourceId">,
  { tableName, namespace = NO_NAMESPACE }: { tableName: string; namespace?: string | undefined },
): string {
  const hash = createHash("sha256").update(JSON.stringify([StackId, LogicalResourceId]));
  return `${tableName}/${namespace}/limits-provisioner/${hash.digest("hex").slice(0, 8)}`;
}

/** The parts of our own ids. */
const OWN_ID = /^(?<table>[^/]+)\/(?<namespace>[A-Za-z][^/]*)\/limits-provisioner\/[0-9a-f]{8}$/;

/**
 * The namespace whose limits the resource with an id may own; undefined if the id is not for this
 * table.
 */
export function namespaceOwnedBy(id: string, tableName: string): string | undefined {
  const { table, namespace } = OWN_ID.exec(id)?.groups ?? {};
  return table === tableName ? namespace : undefined;
}

/**
 * Whether CloudFormation made up an id itself, because it never got an answer to a "Create". It
 * consists of the name of the stack, the logical id and a random part, none of which has a slash.
 */
export function isMadeUp(id: string): boolean {
  return !id.includes("/");
}
