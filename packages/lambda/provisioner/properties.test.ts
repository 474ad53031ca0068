import { expect, it } from "vitest";
import { readManifest, type ManifestError } from "zae-limiter/manifest";
import { declaredProperties } from "./properties.ts";
import { PropertyNames } from "./property-names.ts";

/** The manifest that properties make, and what is wrong with them. */
function read(properties: unknown): { readonly content: unknown; readonly problems: unknown } {
  const names = new PropertyNames();
  const { documents, problems } = declaredProperties(properties, "limits", names);
  return {
    content: documents[0]!.content,
    problems: problems.map((problem) => names.format(problem)),
  };
}

it("reads every property, with numbers and truth values that arrive as texts", () => {
  expect(
    read({
      ServiceToken: "arn:aws:lambda:eu-west-1:123456789012:function:limits-provisioner",
      ServiceTimeout: "60",
      TableName: "limits",
      Namespace: "team-a",
      System: {
        OnUnavailable: "allow",
        AuditRetentionDays: "30",
        UsageRetentionDays: "90",
        Limits: {
          rpm: { Capacity: "100", Burst: "150", RefillAmount: "100", RefillPeriod: "60" },
          tpm: "10000/min:15000",
          rpd: "1000",
        },
      },
      Resources: { "gpt-4": { Inherit: "true", Limits: { tpm: { Capacity: "1.0E7" } } } },
      Entities: {
        acme: { Name: "12", Metadata: { plan: "true", seats: "5" } },
        "key-1": {
          Parent: "1",
          Cascade: "false",
          Resources: { _default_: { Limits: { rpm: "500" } } },
        },
      },
    }),
  ).toEqual({
    content: {
      namespace: "team-a",
      system: {
        on_unavailable: "allow",
        audit_retention_days: 30,
        usage_retention_days: 90,
        limits: {
          rpm: { capacity: 100, burst: 150, refill_amount: 100, refill_period: 60 },
          tpm: "10000/min:15000",
          rpd: 1000,
        },
      },
      resources: { "gpt-4": { inherit: true, limits: { tpm: { capacity: 10_000_000 } } } },
      entities: {
        acme: { name: "12", metadata: { plan: "true", seats: "5" } },
        "key-1": {
          parent: "1",
          cascade: false,
          resources: { _default_: { limits: { rpm: 500 } } },
        },
      },
    },
    problems: [],
  });
});

it("does not rename what somebody chose a name for", () => {
  expect(
    read({
      Resources: { Capacity: { Limits: { Limits: "5", refillAmount: "6" } } },
      Entities: { Parent: { Metadata: { Cascade: "true", teamName: "x" } } },
    }).content,
  ).toEqual({
    resources: { Capacity: { limits: { Limits: 5, refillAmount: 6 } } },
    entities: { Parent: { metadata: { Cascade: "true", teamName: "x" } } },
  });
});

it("keeps what it cannot read, for the manifest to judge", () => {
  const odd = { Namespace: "1", System: { Limits: { rpm: { Capacity: "many", Burst: ["1"] } } } };
  expect(read({ ...odd, Resources: "none", Entities: ["a"] })).toEqual({
    content: {
      namespace: "1",
      system: { limits: { rpm: { capacity: "many", burst: ["1"] } } },
      resources: "none",
      entities: ["a"],
    },
    problems: [],
  });
});

it("names every property that nobody knows, wherever it is", () => {
  expect(
    read({
      namespace: "team-a",
      Resources: { "gpt-4.1": { Limits: { tpm: { Capacty: "5" } }, limits: {} } },
      Entities: { "key-1": { constructor: "x" } },
    }).problems,
  ).toEqual([
    "Properties.namespace: is not a property that is known. Known are Namespace, System, Resources, Entities.",
    "Properties.Resources.gpt-4.1.Limits.tpm.Capacty: is not a property that is known. Known are Capacity, Burst, RefillAmount, RefillPeriod.",
    "Properties.Resources.gpt-4.1.limits: is not a property that is known. Known are Limits, Inherit.",
    "Properties.Entities.key-1.constructor: is not a property that is known. Known are Name, Parent, Cascade, Metadata, Resources.",
  ]);
});

it.each([
  [
    { TableName: "other" },
    "Properties.TableName: is not the table of this function, limits. Leave it out.",
  ],
  [
    { NamespaceId: "aBc" },
    "Properties.NamespaceId: is not supported. Use Namespace, with its name.",
  ],
  [
    { Manifest: "namespace: a", System: {}, Entities: {} },
    "Properties.Manifest: is given together with System, Entities. Give one of both.",
  ],
  [{ Manifest: { namespace: "a" } }, "Properties.Manifest: must be the text of a manifest file."],
])("refuses %j in one sentence", (properties, problem) => {
  expect(read(properties).problems).toEqual([problem]);
});

it.each([undefined, null, "text", ["list"]])("takes %j for no properties", (properties) => {
  expect(read(properties)).toEqual({ content: {}, problems: [] });
});

it.each([
  [
    { Resources: { "gpt-4.1": { Limits: { tpm: { Capacity: "many" }, rpm: { Burst: "5" } } } } },
    [
      "Properties: must name its namespace. Write `Namespace: default`, or another name.",
      "Properties.Resources.gpt-4.1.Limits.tpm.Capacity: must be a number, not string (got 'many'). Write a whole number, such as 100.",
      "Properties.Resources.gpt-4.1.Limits.rpm: must have a capacity. Write `Capacity: 100`, for example.",
    ],
  ],
  [
    { Namespace: "b", Manifest: "namespace: a\n" },
    [
      "Properties.Manifest:1:1: Invalid namespace: differs from that at Properties.Namespace (got 'a'). Files that are read together are about one namespace.",
    ],
  ],
])("says what is wrong with %j in the words of a template", (properties, lines) => {
  const names = new PropertyNames();
  const { documents } = declaredProperties(properties, "limits", names);
  try {
    expect.fail(JSON.stringify(readManifest(documents)));
  } catch (error) {
    const { problems } = error as ManifestError;
    expect(problems.map((problem) => names.format(problem))).toEqual(lines);
  }
});
