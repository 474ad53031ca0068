import { aggregatorResources } from "./aggregator.ts";
import { alarmResources } from "./alarms.ts";
import { archiveResources } from "./archive.ts";
import { templateText } from "../cloudformation/template-text.ts";
import type { Template } from "../cloudformation/template.ts";
import { CONDITIONS, RULES } from "./conditions.ts";
import { buildManagedPolicies } from "./managed-policies.ts";
import { outputs } from "./outputs.ts";
import { PARAMETERS } from "./parameters.ts";
import { provisionerResources } from "./provisioner.ts";
import { roleResources } from "./roles.ts";
import { buildScaling } from "./scaling.ts";
import { tableResources } from "./table.ts";

/**
 * The template of a stack. It is the same for all: what differs is a parameter.
 *
 * @example const { Parameters } = stackTemplate();
 */
export function stackTemplate(): Template {
  return {
    AWSTemplateFormatVersion: "2010-09-09",
    Description: "zae-limiter: the table of a rate limiter, and what keeps it in order.",
    Parameters: PARAMETERS,
    Rules: RULES,
    Conditions: CONDITIONS,
    Resources: {
      ...tableResources(),
      ...buildScaling(),
      ...aggregatorResources(),
      ...archiveResources(),
      ...provisionerResources(),
      ...buildManagedPolicies(),
      ...roleResources(),
      ...alarmResources(),
    },
    Outputs: outputs(),
  };
}

/** Values that are longer than this, as JSON, would be hard to read in one line. */
const LONGEST_LINE = 600;

/**
 * The template as text, below the 51 200 bytes that CloudFormation accepts in a request.
 *
 * @example await writeFile("template.yaml", templateYaml());
 */
export function templateYaml(template: Template = stackTemplate()): string {
  return templateText(template, {
    comment: [
      "The stack of zae-limiter. It is the same for all stacks: what differs is a parameter.",
      "Printed by: zae-limiter cfn-template",
    ],
    longestLine: LONGEST_LINE,
  });
}
