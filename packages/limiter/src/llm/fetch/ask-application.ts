/** What SDKs search for in an error and in its cause to detect a time-out. */
const TIME_OUT = /timed? ?out/i;

/**
 * Waits for functions of the application. Their errors become the `cause` of what an SDK throws.
 * But an SDK that finds a time-out in an error takes it for one of its own request, and drops the
 * error. So such an error is nested two causes deep, where SDKs do not look.
 */
export async function askApplication<T>(
  asking: Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  try {
    return await asking;
  } catch (error) {
    throw signal?.aborted !== true && isTakenForTimeOut(error) ? putDeep(error) : error;
  }
}

function putDeep(error: unknown): Error {
  const cause = new Error("entity, resource or estimator threw an error", { cause: error });
  return new Error("The call was not made, because its cost could not be found", { cause });
}

function isTakenForTimeOut(error: unknown): boolean {
  const { name, cause } = Object(error) as { readonly name?: unknown; readonly cause?: unknown };
  return name === "AbortError" || TIME_OUT.test(`${String(error)} ${String(cause)}`);
}
