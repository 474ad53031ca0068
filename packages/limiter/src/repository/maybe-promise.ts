import type { MaybePromise } from "./port.ts";

/*
 * What every call goes through is written with these instead of `await`: when everything is in
 * memory it runs to its end at once, and each promise that it does without costs as much as a
 * decision. When something must be read first, the same code goes on later.
 */

/** Goes on with a value, at once when it is there. */
export function whenThere<T, U>(
  value: MaybePromise<T>,
  next: (value: T) => MaybePromise<U>,
): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** All values, at once when all are there. */
export function allThere<const T extends readonly unknown[]>(values: T): MaybePromise<Awaiteds<T>> {
  return values.some((value) => value instanceof Promise)
    ? Promise.all(values)
    : (values as Awaiteds<T>);
}

type Awaiteds<T extends readonly unknown[]> = { readonly [Index in keyof T]: Awaited<T[Index]> };
