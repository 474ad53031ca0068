import type { Template } from "./cloudformation.ts";

/** The template of a stack. It is the same for all: what differs is a parameter. */
export function stackTemplate(): Template {
  return {
    AWSTemplateFormatVersion: "2010-09-09",
    Description: "zae-limiter",
    Parameters: {},
    Conditions: {},
    Resources: {},
    Outputs: {},
  };
}

/** The template as text, below the 51 200 bytes that CloudFormation accepts in a request. */
export function templateYaml(): string {
  return JSON.stringify(stackTemplate());
}
