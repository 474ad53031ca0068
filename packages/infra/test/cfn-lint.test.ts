/*
 * cfn-lint reads the template as it is printed, and as it is for combinations of options: a warning
 * about a resource that exists only with certain options shows with these at the latest. One process
 * checks all of them.
 */
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parametersOf, stackTemplate, templateYaml } from "@zae-limiter/infra";
import { expect, it } from "vitest";
import type { StackOptions } from "zae-limiter/dynamodb";
import { isCfnLintInstalled, lint } from "../../../tools/cfn-lint.mjs";
import { describeUnlessMissing } from "../../limiter/test/support/engine.ts";
import { temporaryFile } from "../../limiter/test/support/temporary-file.ts";
import { resolvedTemplate, Resolver } from "../src/cdk/resolved-template.ts";
import { defaultParameters } from "../src/options/parameters.ts";

const CODE = { CodeBucket: "code-of-limits", AggregatorCodeKey: "zae-limiter/abc/aggregator.zip" };
const NO_CODE = { CodeBucket: "", AggregatorCodeKey: "" };

/** Together they turn each condition both ways. */
const COMBINATIONS: Readonly<Record<string, StackOptions>> = {
  "everything on": {
    billingMode: "provisioned",
    createIamRoles: true,
    enableTracing: true,
    enableDeletionProtection: true,
    pitrRecoveryDays: 7,
    aggregatorReservedConcurrency: 5,
    alarmSnsTopic: "arn:aws:sns:eu-west-1:111122223333:alarms",
    permissionBoundary: "arn:aws:iam::111122223333:policy/boundary",
    roleNameFormat: "team-{}",
    policyNameFormat: "team-{}",
  },
  "a role of somebody else": {
    createIam: false,
    aggregatorRoleArn: "arn:aws:iam::111122223333:role/aggregator",
    enableAuditArchival: false,
  },
  "a boundary by name": { permissionBoundary: "boundary", enableAlarms: false },
  "no aggregator": { enableAggregator: false },
};

const title = `finds nothing in the template, nor with ${Object.keys(COMBINATIONS).join(", ")}`;
const missing = isCfnLintInstalled()
  ? undefined
  : "cfn-lint is not installed; run: node tools/cfn-lint.mjs (needs Python)";

describeUnlessMissing("cfn-lint", missing, () => {
  it(title, { timeout: 120_000 }, lintAll);
});

function lintAll(): void {
  const printed = temporaryFile("printed.yaml");
  writeFileSync(printed, templateYaml());
  const folder = dirname(printed);
  const files = Object.entries(COMBINATIONS).flatMap(([name, options]) => {
    const file = join(folder, `${name}.json`);
    writeFileSync(
      file,
      JSON.stringify({
        AWSTemplateFormatVersion: "2010-09-09",
        ...resolvedTemplate(stackTemplate(), parametersWith(options)),
      }),
    );
    return file;
  });
  expect(lint([printed, ...files])).toBe("");
}

/** The parameters of a stack; where there is an aggregator, there is code. */
function parametersWith(options: StackOptions): Readonly<Record<string, string>> {
  const code = options.enableAggregator === false ? NO_CODE : CODE;
  return { ...defaultParameters(), ...parametersOf("limits", options), ...code };
}

it("every condition holds in one of these combinations, and fails in another", () => {
  const template = stackTemplate();
  const resolvers = Object.values(COMBINATIONS).map(
    (options) => new Resolver(template, parametersWith(options)),
  );
  const seen = Object.keys(template.Conditions).map((Condition) => {
    const outcomes = resolvers.map((resolver) => resolver.holds({ Condition }));
    return [Condition, outcomes.includes(true) && outcomes.includes(false)];
  });
  expect(seen.filter(([, isSeen]) => isSeen === false)).toEqual([]);
  for (const { Assertions } of Object.values(template.Rules))
    for (const { Assert } of Assertions)
      expect(resolvers.every((resolver) => resolver.holds(Assert))).toBe(true);
});
