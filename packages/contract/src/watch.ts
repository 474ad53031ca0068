/** The state of a promise so far. */
export interface Watched<T> {
  state: "pending" | "fulfilled" | "rejected";
  value?: T;
  reason?: unknown;
}

/** Observes a promise without awaiting it. */
export function watch<T>(promise: Promise<T>): Watched<T> {
  const watched: Watched<T> = { state: "pending" };
  promise.then(
    (value) => Object.assign(watched, { state: "fulfilled", value }),
    (reason: unknown) => Object.assign(watched, { state: "rejected", reason }),
  );
  return watched;
}
