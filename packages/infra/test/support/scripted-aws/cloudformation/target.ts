import { validationError, type AwsInput } from "../aws-call.ts";
import { isInProgress, type ScriptedStack, type Target } from "./stack-state.ts";
import {
  holds,
  parameterValues,
  parsedTemplate,
  resolveIt,
  type GivenParameter,
  type Scope,
} from "./template-model.ts";

/** Throws unless a stack is in a status in which it can be updated. */
export function assertUpdatable(stack: ScriptedStack | undefined, name: string): void {
  if (stack === undefined) throw validationError(`Stack [${name}] does not exist`);
  const { status, id } = stack;
  const cannot = ["REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "DELETE_FAILED"];
  if (isInProgress(stack) || cannot.includes(status) || status === "CREATE_FAILED")
    throw validationError(`Stack:${id} is in ${status} state and can not be updated.`);
}

/** The state that a request wants a stack to have. */
export function getTarget(
  input: AwsInput,
  current: Target | undefined,
  toJson: (body: string) => string,
): Target {
  const templateBody =
    input["UsePreviousTemplate"] === "true"
      ? (current?.templateBody ?? "")
      : ((input["TemplateBody"] as string | undefined) ?? "");
  const template = parsedTemplate(templateBody, toJson);
  const given = (input["Parameters"] || []) as readonly GivenParameter[];
  const tags = input["Tags"] as readonly { Key: string; Value: string }[] | undefined;
  return {
    template,
    templateBody,
    parameters: parameterValues(template, given, current?.parameters ?? {}),
    tags: Array.isArray(tags)
      ? Object.fromEntries(tags.map(({ Key, Value }) => [Key, Value]))
      : (current?.tags ?? {}),
  };
}

/** The outputs of a stack that is complete. */
export function listOutputs(scope: Scope): ScriptedStack["outputs"] {
  return Object.entries(scope.template.Outputs)
    .filter(([, { Condition }]) => Condition === undefined || holds(Condition as string, scope))
    .map(([OutputKey, { Value, Description, Export }]) => {
      const exported = resolveIt(Export, scope) as { Name: string } | undefined;
      const output: Record<string, string> = {
        OutputKey,
        OutputValue: String(resolveIt(Value, scope)),
      };
      if (Description !== undefined) output["Description"] = Description as string;
      if (exported !== undefined) output["ExportName"] = exported.Name;
      return output;
    });
}
