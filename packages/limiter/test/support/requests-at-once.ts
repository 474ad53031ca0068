/** Makes this many requests at the same time. */
export function requestsAtOnce(url: string, count: number): Promise<readonly Response[]> {
  return Promise.all(Array.from({ length: count }, () => fetch(url)));
}

/** The status codes of requests made at the same time, in ascending order. */
export async function statusesAtOnce(url: string, count: number): Promise<readonly number[]> {
  return ascending((await requestsAtOnce(url, count)).map(({ status }) => status));
}

/** What the responses that were not refused say is left, in ascending order. */
export function remainingIn(
  responses: readonly Response[],
  header = "x-ratelimit-remaining",
): readonly number[] {
  return ascending(
    responses
      .filter(({ status }) => status === 200)
      .map(({ headers }) => Number(/(?:^|remaining=)(\d+)/.exec(headers.get(header)!)![1])),
  );
}

function ascending(numbers: readonly number[]): readonly number[] {
  return [...numbers].sort((left, right) => left - right);
}
