/*
 * cfn-lint reads the template as it is printed, and as it is for some sets of options: a warning
 * about a resource that exists only with certain options shows with these at the latest.
 * All are checked by one process.
 */
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { toParameters, stackTemplate, templateYaml } from "@zae-limiter/infra";
import { limitsTemplate, manifestYaml, yamlDocument } from "@zae-limiter/infra/manifest";
import { expect, it } from "vitest";
import type { StackOptions } from "zae-limiter/dynamodb";
import { readManifest } from "zae-limiter/manifest";
import { isCfnLintInstalled, lint } from "../../../tools/cfn-lint.mjs";
import { describeUnlessMissing } from "../../limiter/test/support/engine.ts";
import { temporaryFile } from "../../limiter/test/support/temporary-file.ts";
import { resolveTemplate, Resolver } from "../src/options/resolve-template.ts";
import { defaultParameters } from "../src/options/parameters.ts";

/** The options that conditions depend on, each with a value that turns these. */
const CHOICES: readonly StackOptions[] = [
  {},
  { createIam: false },
  { createIamRoles: true },
  { aggregatorRoleArn: "arn:aws:iam::111122223333:role/aggregator" },
  { enableAggregator: false },
  { enableProvisioner: false },
  { enableAlarms: false },
  { enableAuditArchival: false },
  { billingMode: "provisioned" },
  { enableTracing: true },
  { enableDeletionProtection: true },
  { pitrRecoveryDays: 7 },
  { aggregatorReservedConcurrency: 5 },
  { alarmSnsTopic: "arn:aws-cn:sns:cn-north-1:111122223333:alarms" },
  { permissionBoundary: "boundary" },
  { roleNameFormat: "team-{}" },
  { policyNameFormat: "team-{}" },
];

/** Values that change the same resources. */
const TOGETHER: readonly StackOptions[] = [
  { createIam: false, aggregatorRoleArn: "arn:aws:iam::111122223333:role/aggregator" },
  { enableAggregator: false, enableProvisioner: false, enableAlarms: false },
  { enableAggregator: false, createIamRoles: true, enableTracing: true },
  {
    createIamRoles: true,
    permissionBoundary: "arn:aws:iam::aws:policy/boundary",
    roleNameFormat: "team-{}",
    policyNameFormat: "team-{}",
    enableTracing: true,
    enableAuditArchival: false,
    billingMode: "provisioned",
    pitrRecoveryDays: 7,
    alarmSnsTopic: "arn:aws:sns:eu-west-1:111122223333:alarms",
  },
];

/** Limits whose templates are checked too, with names that look like values in YAML. */
const LIMITS: readonly string[] = [
  "",
  `system: {on_unavailable: block, limits: {rpm: 100}},
   resources: {"no": {inherit: true, limits: {tpm: 1000000000/min}}},
   entities: {"12:30": {}, "2001-01-01": {parent: "12:30", cascade: true, name: "y: #", metadata: {"null": "~"}}}`,
  `entities: {Ref: {resources: {_default_: {limits: {rpm: 5}}}}}`,
];

/** Each value alone, and some together. */
const COMBINATIONS: readonly StackOptions[] = [...CHOICES, ...TOGETHER];

const TEMPLATE = stackTemplate();
const title = `finds nothing in the template, nor with ${COMBINATIONS.length} sets of options`;
const missing = isCfnLintInstalled()
  ? undefined
  : "cfn-lint is not installed; run: node tools/cfn-lint.mjs (needs Python)";

describeUnlessMissing("cfn-lint", missing, () => {
  it(title, { timeout: 120_000 }, () => {
    const printed = temporaryFile("printed.yaml");
    writeFileSync(printed, templateYaml());
    const files = COMBINATIONS.map((options, index) => {
      const file = join(dirname(printed), `${index}.json`);
      const template = resolveTemplate(parametersWith(options));
      const text = JSON.stringify({ AWSTemplateFormatVersion: "2010-09-09", ...template });
      writeFileSync(file, text);
      return file;
    });
    const limits = LIMITS.map((manifest, index) => {
      const file = join(dirname(printed), `limits-${index}.yaml`);
      const document = yamlDocument("limits.yaml", `{namespace: team-a, ${manifest}}`);
      const template = limitsTemplate(readManifest([document]), { stack: "limits" });
      writeFileSync(file, manifestYaml(template));
      return file;
    });
    expect(lint([printed, ...files, ...limits])).toBe("");
  });
});

it("every condition holds in one of these combinations, and fails in another", () => {
  const resolvers = COMBINATIONS.map((options) => new Resolver(TEMPLATE, parametersWith(options)));
  const outcomes = Object.keys(TEMPLATE.Conditions).map((Condition) => [
    Condition,
    new Set(resolvers.map((resolver) => resolver.holds({ Condition }))).size,
  ]);
  // Without a key for code there is no function: the printed template is checked so, too.
  const oneWay = outcomes.filter(([, ways]) => ways !== 2).map(([name]) => name);
  expect(oneWay).toEqual(["HasCodeBucket", "HasAggregatorCode", "HasProvisionerCode"]);
  for (const { Assertions } of Object.values(TEMPLATE.Rules))
    for (const { Assert } of Assertions)
      expect(resolvers.every((resolver) => resolver.holds(Assert))).toBe(true);
});

/** The parameters of a stack that has code. */
function parametersWith(options: StackOptions): Readonly<Record<string, string>> {
  const code = {
    CodeBucket: "code-of-limits",
    AggregatorCodeKey: "zae-limiter/abc/aggregator.zip",
    ProvisionerCodeKey: "zae-limiter/abc/provisioner.zip",
  };
  return { ...defaultParameters(), ...toParameters("limits", options), ...code };
}
