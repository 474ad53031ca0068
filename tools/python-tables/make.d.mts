/** The releases that tables are made with. */
export declare const RELEASES: readonly string[];

/** What a release says to a table: "opened", or the name of its error. */
export declare function openWith(
  release: string,
  where: {
    readonly endpointUrl: string;
    readonly tableName: string;
    readonly namespace: string;
  },
): string | undefined;
