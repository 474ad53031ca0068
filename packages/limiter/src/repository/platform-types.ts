/*
 * What the declarations of this package need of the platform's types. A project may have none of
 * them: `Symbol.asyncDispose` is in @types/node and in a library of the compiler that is newer than
 * TypeScript 5.0, and `AbortSignal` is in @types/node and in the library of the DOM. The
 * declarations here merge with those, wherever they are.
 */
declare global {
  interface SymbolConstructor {
    readonly asyncDispose: unique symbol;
    readonly dispose: unique symbol;
  }
  interface AbortSignal {}
}

/**
 * What `await using` disposes of. The same as the compiler's own type, which not all of them have.
 */
export interface AsyncDisposable {
  /**
   * Called by `await using` at the end of its block.
   * @example await using repository = await SqliteRepository.open("limits.db");
   */
  [Symbol.asyncDispose](): Promise<void>;
}

/** What `using` disposes of. The same as the compiler's own type, which not all of them have. */
export interface Disposable {
  /**
   * Called by `using` at the end of its block.
   * @example using telemetry = instrument();
   */
  [Symbol.dispose](): void;
}
