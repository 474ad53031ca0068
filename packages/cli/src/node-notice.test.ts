import { expect, it } from "vitest";
import { holdNodeNotice } from "./node-notice.ts";

/** What the SDK says on Node 20, word for word. */
const NOTICE = `NodeVersionSupportWarning: The AWS SDK for JavaScript (v3)
versions published after the first week of January 2027
will require node >=22. You are running node v20.20.2.

To continue receiving updates to AWS services, bug fixes,
and security updates please upgrade to node >=22.`;

function warnings(): {
  readonly seen: unknown[];
  readonly target: Pick<NodeJS.Process, "emitWarning">;
} {
  const seen: unknown[] = [];
  return { seen, target: { emitWarning: (...given: unknown[]) => void seen.push(given) } };
}

it("holds back the SDK's notice about Node, and keeps its first paragraph", () => {
  const { seen, target } = warnings();
  const notice = holdNodeNotice(target);
  expect(notice()).toBeUndefined();
  target.emitWarning(NOTICE);
  expect(seen).toEqual([]);
  expect(notice()).toBe(
    "The AWS SDK for JavaScript (v3) versions published after the first week of January 2027 " +
      "will require node >=22. You are running node v20.20.2.",
  );
});

it("lets every other warning pass as it was given", () => {
  const { seen, target } = warnings();
  const notice = holdNodeNotice(target);
  const error = new Error("one of NodeVersionSupportWarning's kind");
  target.emitWarning("old", "DeprecationWarning", "DEP0001");
  target.emitWarning(error);
  expect(seen).toEqual([["old", "DeprecationWarning", "DEP0001"], [error]]);
  expect(notice()).toBeUndefined();
});
