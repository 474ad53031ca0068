/**
 * A provider's response with another body, and perhaps other headers. It says what the original
 * says, also where `new Response` does not.
 */
export function buildWatchedResponse(
  body: ReadableStream<Uint8Array>,
  original: Response,
  headers: Headers,
): Response {
  return copyFields(original, new Response(body, { status: original.status, headers }));
}

/**
 * What `new Response` makes has no URL, and takes no status text beyond Latin-1. A clone has no URL
 * either. It stays the one that the platform made, because Node cancels the body of a clone that
 * is not referenced any more.
 */
function copyFields(original: Response, response: Response): Response {
  const { statusText, url, redirected, type } = original;
  const clone = (): Response => copyFields(original, Response.prototype.clone.call(response));
  for (const [name, value] of Object.entries({ statusText, url, redirected, type, clone }))
    // Instruments may put something else there, as they may on a response of fetch.
    Object.defineProperty(response, name, { value, configurable: true, writable: true });
  return response;
}
