export type { SqliteDatabase, SqliteStatement } from "./driver.ts";
export { SqliteRepository, type SqliteOptions } from "./sqlite-repository.ts";
