import type { ConfigVersion } from "./transactions/config-version.ts";
import type { Connection } from "./database/connection.ts";
import type { Transactions } from "./transactions/transactions.ts";

/** What the parts of one namespace work with. */
export interface SqliteNamespace {
  readonly namespaceId: string;
  readonly connection: Connection;
  readonly transactions: Transactions;
  readonly nowMs: () => number;
  readonly config: ConfigVersion;
}
