export type { SqliteDatabase, SqliteStatement } from "./database/driver.ts";
export { SqliteRepository, type SqliteOptions } from "./sqlite-repository.ts";
