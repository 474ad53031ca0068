/** The frame's placeholder: branch `telemetry` replaces it. */
export function instrument(): Disposable {
  return { [Symbol.dispose]: () => {} };
}
