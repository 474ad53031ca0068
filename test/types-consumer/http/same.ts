/** Whether both types are the same; `any` is the same as nothing but itself. */
export type Same<One, Other> =
  InParameter<One> extends InParameter<Other>
    ? InParameter<Other> extends InParameter<One>
      ? true
      : false
    : false;

// The compiler compares the conditions of two such functions, and does not simplify them.
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- see above.
type InParameter<One> = <T>() => T extends One ? 1 : 2;

/**
 * Compiles only if the type of a value is the one that is named.
 * @example typeOf(request.params.id).is<string>(true);
 */
export function typeOf<T>(_value: T): { is<Expected>(same: Same<T, Expected>): void } {
  return { is: () => {} };
}
