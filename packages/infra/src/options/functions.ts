import { functionCondition, type FunctionPart } from "../template/functions.ts";
import type { ParameterName } from "../template/parameters.ts";
import { stackTemplate } from "../template/stack-template.ts";
import { defaultParameters, type Parameters } from "./parameters.ts";
import { Resolver } from "./resolve-template.ts";

/** The functions of a stack, as their packages are called. */
export type FunctionName = Lowercase<FunctionPart>;

const PARTS: Readonly<Record<FunctionName, FunctionPart>> = {
  aggregator: "Aggregator",
  provisioner: "Provisioner",
};

/** The functions that a stack with these parameters has, once they have code. */
export function listFunctions(given: Parameters): readonly FunctionName[] {
  const names = Object.keys(PARTS) as readonly FunctionName[];
  const resolver = new Resolver(stackTemplate(), {
    ...defaultParameters(),
    ...given,
    CodeBucket: "bucket",
    ...Object.fromEntries(names.map((name) => [codeParameter(name), "key"])),
  });
  return names.filter((name) => resolver.holds({ Condition: functionCondition(PARTS[name]) }));
}

/** The parameter that says where in its bucket the code of a function is. */
export function codeParameter(name: FunctionName): ParameterName {
  return `${PARTS[name]}CodeKey`;
}
