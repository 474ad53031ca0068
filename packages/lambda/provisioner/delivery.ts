/** Sends a body to an address by PUT, and returns the status of the answer. */
export type Put = (url: string, body: string) => Promise<number>;

/** How long to wait before each further attempt. All attempts together take about ten seconds. */
const PAUSES_MS = [250, 500, 1000];

/** How long one attempt may take. */
const ATTEMPT_MS = 2000;

/**
 * Delivers an answer to CloudFormation, or throws: then the invocation fails, and Lambda repeats it
 * later. The error does not contain the address, because the address alone permits an answer.
 */
export async function deliver(
  url: string,
  body: string,
  { put, sleep }: { readonly put: Put; readonly sleep: (ms: number) => Promise<unknown> },
): Promise<void> {
  let problem = await attempt(url, body, put);
  for (const pauseMs of PAUSES_MS) {
    if (problem === undefined) return;
    await sleep(pauseMs);
    problem = await attempt(url, body, put);
  }
  if (problem !== undefined)
    throw new Error(`CloudFormation's address for the answer did not take it: ${problem}.`);
}

/**
 * Puts a body as S3 demands it: the address is signed for an empty content type. Buffers, unlike
 * texts, are sent with their length and without a content type of their own.
 */
export async function putToSignedUrl(url: string, body: string): Promise<number> {
  const response = await fetch(url, {
    method: "PUT",
    body: Buffer.from(body),
    headers: { "content-type": "" },
    signal: AbortSignal.timeout(ATTEMPT_MS),
  });
  // Frees the connection.
  await response.arrayBuffer();
  return response.status;
}

/** Returns the problem in a few words, or undefined if the answer was accepted. */
async function attempt(url: string, body: string, put: Put): Promise<string | undefined> {
  try {
    const status = await put(url, body);
    return status >= 200 && status < 300 ? undefined : `its status is ${status}`;
  } catch (error) {
    const { name, cause } = error as { readonly name?: string; readonly cause?: unknown };
    const { code } = Object(cause) as { readonly code?: unknown };
    return typeof code === "string" ? code : (name ?? "unknown");
  }
}
