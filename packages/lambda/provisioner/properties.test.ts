import { expect, it } from "vitest";
import { formatProblem, type ManifestError } from "zae-limiter/manifest";
import { readProperties } from "./properties.ts";

it("reads the text of a manifest, beside what every custom resource has", () => {
  const { namespace, declared } = readProperties({
    ServiceToken: "arn:aws:lambda:eu-west-1:123456789012:function:limits-provisioner",
    ServiceTimeout: "60",
    Manifest: "namespace: team-a\nresources: {gpt-4: {limits: {rpm: 5}}}\n",
  });
  expect(namespace).toBe("team-a");
  expect(Object.keys(declared.resources)).toEqual(["gpt-4"]);
});

const NO_TEXT = "Properties.Manifest: must be the text of a manifest, YAML or JSON.";

it.each([
  [
    { Namespace: "a", Manifest: "namespace: a\nsystem: {limits: {rpm: many}}" },
    [
      "Properties.Namespace: is not a property that is known. Write what it says in `Manifest`.",
      expect.stringMatching(/^Properties\.Manifest:2:19: Invalid system\.limits\.rpm: /),
    ],
  ],
  [{ Manifest: "a: [" }, [expect.stringMatching(/^Properties\.Manifest:1:/)]],
  [{ Manifest: { namespace: "a" } }, [NO_TEXT]],
  [undefined, [NO_TEXT]],
  [["list"], [NO_TEXT]],
])("says everything that is wrong with %j", (properties, lines) => {
  try {
    expect.fail(JSON.stringify(readProperties(properties)));
  } catch (error) {
    expect((error as ManifestError).problems.map(formatProblem)).toEqual(lines);
  }
});
