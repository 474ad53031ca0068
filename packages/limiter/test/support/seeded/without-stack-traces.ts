/**
 * Runs what throws lost requests and refusals by the thousand: a stack trace would cost more than
 * the rest of such an event.
 */
export async function withoutStackTraces<T>(work: () => Promise<T>): Promise<T> {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return await work();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
