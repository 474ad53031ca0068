/** What Lambda is told about a batch: everything from the first of these on is delivered again. */
export interface BatchResponse {
  readonly batchItemFailures: readonly { readonly itemIdentifier: string }[];
}
