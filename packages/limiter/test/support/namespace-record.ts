import {
  getString,
  type AttributeMap,
} from "../../src/repository/dynamodb/transport/attribute-values.ts";

/**
 * What a table in memory replies when it is asked for a namespace: all are active there. Undefined
 * for other keys.
 */
export function namespaceRecord({ PK, SK }: AttributeMap): AttributeMap | undefined {
  const id = /^#NSID#(.+)$/.exec(getString(SK) ?? "")?.[1];
  if (id === undefined) return undefined;
  return {
    PK: PK!,
    SK: SK!,
    namespace_name: { S: id },
    namespace_id: { S: id },
    status: { S: "active" },
    created_at: { S: "2026-01-01T00:00:00.000Z" },
  };
}
