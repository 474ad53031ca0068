// The template that declares limits, and the function that reads it. CloudFormation reads YAML 1.1.
import { limitsTemplate, manifestYaml, yamlDocument } from "@zae-limiter/infra/manifest";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { buildManifest, readManifest, type Manifest } from "zae-limiter/manifest";
import { declaredLimits } from "../../limiter/test/support/declared-limits.ts";
import { seedsFromEnvironment } from "../../limiter/test/support/seeded/seeds.ts";
import { readProperties } from "../../lambda/provisioner/properties.ts";

const { count: RUNS } = seedsFromEnvironment({ usual: 20 });

/** What a manifest becomes on its way through a template. */
function through(given: Manifest, version: "1.1" | "1.2" = "1.1"): Manifest {
  const text = manifestYaml(limitsTemplate(given, { stack: "limits" }));
  const template = parse(text, { version }) as ReturnType<typeof limitsTemplate>;
  return readProperties(template.Resources.Limits.Properties);
}

function manifest(text: string): Manifest {
  return readManifest([yamlDocument("limits.yaml", text)]);
}

it("the function reads the manifest that the template was made of", () => {
  fc.assert(
    fc.property(declaredLimits(), fc.constantFrom("1.1", "1.2"), (declared, version) => {
      const given = manifest(JSON.stringify(buildManifest("team-a", declared)));
      const { namespace, declared: read, hash } = through(given, version);
      expect({ namespace, read, hash }).toEqual({
        namespace: "team-a",
        read: declared,
        hash: given.hash,
      });
    }),
    { numRuns: RUNS },
  );
});

const SECRET = "{{{resolve:secretsmanager:prod:SecretString:password}} {{resolve:ssm:x}}";

it.each([
  ["value", { key: SECRET }],
  ["value with words before it", { key: `see ${SECRET}` }],
  ["name", { [SECRET]: "value" }],
])("a %s that looks like a reference to a secret is not a reference", (_, metadata) => {
  const given = manifest(JSON.stringify({ namespace: "team-a", entities: { acme: { metadata } } }));
  expect(manifestYaml(limitsTemplate(given, { stack: "limits" }))).not.toContain("{{resolve:");
  expect(through(given).declared).toEqual(given.declared);
});

it("is one resource with the manifest as it is written in a file", () => {
  const given = manifest(`
    namespace: team-a
    system: {on_unavailable: allow, audit_retention_days: 30, limits: {rpm: 100}}
    entities:
      acme: {}
      key_1: {parent: acme, metadata: {cost_centre: "007"}, resources: {_default_: {limits: {tpm: {capacity: 5, burst: 50}}}}}
  `);
  expect(manifestYaml(limitsTemplate(given, { stack: "limits" }))).toBe(`\
AWSTemplateFormatVersion: "2010-09-09"
Description: "zae-limiter: the limits of namespace team-a in the stack limits."
Resources:
  Limits:
    Type: Custom::ZaeLimiterLimits
    Properties:
      ServiceToken:
        Fn::ImportValue: limits-ProvisionerArn
      ServiceTimeout: 1920
      Manifest: |
        namespace: team-a
        system:
          on_unavailable: allow
          audit_retention_days: 30
          inherit: true
          limits:
            rpm: 100/min
        entities:
          acme: {}
          key_1:
            parent: acme
            metadata:
              cost_centre: "007"
            resources:
              _default_:
                inherit: true
                limits:
                  tpm: 5/min:50
`);
});

it("refuses a name that no stack has", () => {
  const given = manifest("{namespace: team-a}");
  expect(() => limitsTemplate(given, { stack: "a_b" })).toThrow("Invalid stack: must begin with");
});
