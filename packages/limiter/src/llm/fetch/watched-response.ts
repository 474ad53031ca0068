/** What a response says of itself. */
type Said = Pick<Response, "status" | "statusText" | "headers">;

/** What only `fetch` can say of a response. */
type Origin = Pick<Response, "url" | "redirected" | "type">;

/**
 * A provider's response with another body. It says what the original says, also where
 * `new Response` does not: that has no URL, and neither has its clone.
 */
export function watchedResponse(
  body: ReadableStream<Uint8Array>,
  { status, statusText, headers }: Said,
  original: Origin,
): Response {
  return withOrigin(new Response(body, { status, statusText, headers }), original);
}

/**
 * The clone is the one that the platform made, and no other response with its body: Node cancels
 * the body of a clone that nobody refers to any more.
 */
function withOrigin(response: Response, { url, redirected, type }: Origin): Response {
  const clone = (): Response =>
    withOrigin(Response.prototype.clone.call(response), { url, redirected, type });
  return Object.defineProperties(response, {
    url: { value: url },
    redirected: { value: redirected },
    type: { value: type },
    clone: { value: clone },
  });
}
