import type { ConfigVersion } from "./config-version.ts";
import type { Connection } from "./connection.ts";
import type { Transactions } from "./transactions.ts";

/** What the parts of one namespace work with. */
export interface SqliteNamespace {
  readonly namespaceId: string;
  readonly connection: Connection;
  readonly transactions: Transactions;
  readonly nowMs: () => number;
  readonly config: ConfigVersion;
}
