/** A promise that a test settles when it wants to. */
export interface HeldAnswer<Value> {
  readonly promise: Promise<Value>;
  readonly resolve: (value: Value) => void;
  readonly reject: (error: unknown) => void;
}

/** Node 20 has no `Promise.withResolvers`. */
export function heldAnswer<Value>(): HeldAnswer<Value> {
  let settle: Pick<HeldAnswer<Value>, "resolve" | "reject">;
  const promise = new Promise<Value>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...settle! };
}
