/**
 * Emits a warning. In Node it is a warning of the process, which programs can listen to and users
 * can switch off; browsers and edge runtimes have no process, and get it on the console.
 */
export function emitWarning(message: string, { code }: { readonly code: string }): void {
  const { process } = globalThis as {
    readonly process?: Partial<Pick<NodeJS.Process, "emitWarning">>;
  };
  if (process?.emitWarning === undefined) console.warn(`${code}: ${message}`);
  else process.emitWarning(message, { code });
}
