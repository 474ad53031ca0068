/** Where audit events are kept when their time in the table is over. */
export interface AuditArchive {
  /**
   * Stores an object under a name such as `audit/namespace=…/year=2026/…`, and resolves when it is
   * safe. The same name always has the same content, so it may be stored again.
   * @example await archive.store(name, gzipped);
   */
  store(name: string, content: Uint8Array): Promise<void>;
}
