/** What Lambda calls. */
export async function handler(event: unknown): Promise<unknown> {
  throw new Error(`not built yet: ${JSON.stringify(event)}`);
}
