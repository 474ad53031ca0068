/** What a response says of itself. */
type Said = Pick<Response, "status" | "statusText" | "headers">;

/**
 * A provider's response with another body. It says what the original says, also where
 * `new Response` does not: that has no URL, and neither has its clone.
 */
export function watchedResponse(
  body: ReadableStream<Uint8Array> | null,
  { status, statusText, headers }: Said,
  original: Pick<Response, "url" | "redirected" | "type">,
): Response {
  const response = new Response(body, { status, statusText, headers });
  const { url, redirected, type } = original;
  const clone = (): Response => {
    const copy = Response.prototype.clone.call(response);
    return watchedResponse(copy.body, copy, original);
  };
  return Object.defineProperties(response, {
    url: { value: url },
    redirected: { value: redirected },
    type: { value: type },
    clone: { value: clone },
  });
}
