import { expect, it } from "vitest";

/**
 * What a tool fetches, or nothing where it cannot: then a skipped test says so, or fails where
 * everything is required (`ZAEL_REQUIRE_ENGINES=1`, as in continuous integration).
 */
export function availableOrSkipped<T>(what: string, fetch: () => T): T | undefined {
  try {
    return fetch();
  } catch (error) {
    const reason = `${what} could not be fetched: ${String(error).split("\n")[0]}`;
    if (process.env["ZAEL_REQUIRE_ENGINES"] === "1") it(what, () => expect.fail(reason));
    else {
      console.warn(`SKIPPED ${reason}`);
      it.skip(reason, () => {});
    }
    return undefined;
  }
}
