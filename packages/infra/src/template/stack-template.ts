import { aggregatorResources } from "./aggregator.ts";
import { alarmResources } from "./alarms.ts";
import { archiveResources } from "./archive.ts";
import type { Template } from "./cloudformation.ts";
import { CONDITIONS, RULES } from "./conditions.ts";
import { managedPolicyResources } from "./managed-policies.ts";
import { outputs } from "./outputs.ts";
import { PARAMETERS } from "./parameters.ts";
import { roleResources } from "./roles.ts";
import { scalingResources } from "./scaling.ts";
import { tableResources } from "./table.ts";

/** The template of a stack. It is the same for all: what differs is a parameter. */
export function stackTemplate(): Template {
  return {
    AWSTemplateFormatVersion: "2010-09-09",
    Description: "zae-limiter: the table of a rate limiter, and what keeps it in order.",
    Parameters: PARAMETERS,
    Rules: RULES,
    Conditions: CONDITIONS,
    Resources: {
      ...tableResources(),
      ...scalingResources(),
      ...aggregatorResources(),
      ...archiveResources(),
      ...managedPolicyResources(),
      ...roleResources(),
      ...alarmResources(),
    },
    Outputs: outputs(),
  };
}
