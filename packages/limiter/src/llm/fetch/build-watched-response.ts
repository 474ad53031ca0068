/**
 * Builds a copy of a provider's response with another body, and perhaps other headers. It also has
 * the fields of the original that `new Response` cannot set.
 */
export function buildWatchedResponse(
  body: ReadableStream<Uint8Array>,
  original: Response,
  headers: Headers,
): Response {
  return copyFields(original, new Response(body, { status: original.status, headers }));
}

/**
 * A `new Response` has no URL and no status text beyond Latin-1, and neither has a clone of it. A
 * clone must be the object that the platform made, because Node cancels the body of a clone that is
 * not referenced any more.
 */
function copyFields(original: Response, response: Response): Response {
  const { statusText, url, redirected, type } = original;
  const clone = (): Response => copyFields(original, Response.prototype.clone.call(response));
  for (const [name, value] of Object.entries({ statusText, url, redirected, type, clone }))
    // Instrumentation may replace these fields, as it may on a response of fetch.
    Object.defineProperty(response, name, { value, configurable: true, writable: true });
  return response;
}
