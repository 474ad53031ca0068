import { DescribeTableCommand } from "@aws-sdk/client-dynamodb";
import type { Parameter } from "@aws-sdk/client-cloudformation";
import type { StackOptions } from "zae-limiter/dynamodb";
import { isTableAbsent } from "../aws/aws-errors.ts";
import type { AwsClients } from "../aws/clients.ts";
import { defaultCodeBucket } from "../code/code-bucket.ts";
import { codeKey, lambdaPackage, type LambdaPackage } from "../code/lambda-package.ts";
import { codeParameter, listFunctions, type FunctionName } from "../options/functions.ts";
import { defaultParameters, toParameters, type Parameters } from "../options/parameters.ts";
import { stackTemplate, templateYaml } from "../template/stack-template.ts";
import { TABLE } from "../template/table.ts";
import type { Wanted } from "./change-set.ts";
import type { StackState } from "./stack-state.ts";
import { stackTags } from "../options/tags.ts";

/** A planned deployment. */
export interface Plan {
  readonly wanted: Wanted;
  /** The code that must be in its bucket first; undefined if the stack has no function. */
  readonly code: Code | undefined;
}

/** The code of functions, and the bucket for it. */
export interface Code {
  readonly packages: readonly LambdaPackage[];
  readonly bucket: string;
}

/** The code of these functions; undefined if there are none. */
export async function readCode(
  names: readonly FunctionName[],
  bucket: string,
): Promise<Code | undefined> {
  if (names.length === 0) return undefined;
  return { packages: await Promise.all(names.map((name) => lambdaPackage(name))), bucket };
}

/** The parameters that say where the code of functions is. */
export function codeKeys({ packages }: Code): Parameters {
  return Object.fromEntries(packages.map((each) => [codeParameter(each.name), codeKey(each)]));
}

/**
 * Plans a deployment: the template of this version, with the parameters that the options name.
 * Others keep the value in the stack; new ones have the default of the template.
 */
export async function planDeployment(
  clients: AwsClients,
  existing: StackState | undefined,
  options: {
    readonly stackOptions?: StackOptions;
    readonly codeBucket?: string;
    readonly account: string;
  },
): Promise<Plan> {
  const { stackOptions = {}, codeBucket, account } = options;
  const { stack, region } = clients;
  const current = existing?.parameters ?? {};
  const named = toParameters(stack, stackOptions, current);
  const bucket = codeBucket ?? (current["CodeBucket"] || defaultCodeBucket(account, region));
  const code = await readCode(listFunctions({ ...current, ...named }), bucket);
  const given = { ...named, ...(code && { CodeBucket: bucket, ...codeKeys(code) }) };
  const tags = stackTags(stack, {
    user: stackOptions.tags,
    current: existing?.tags ?? {},
    hasCode: code !== undefined,
  });
  const wanted: Wanted = {
    type: existing === undefined ? "CREATE" : "UPDATE",
    templateBody: templateFor(stack),
    parameters: parameterList(given, current),
    tags,
    importExisting: existing === undefined && (await tableExists(clients)),
  };
  return { wanted, code };
}

/**
 * Every parameter of the template, named, or as the stack has it. CloudFormation would give one
 * that is left out its default, also where the stack has another value.
 */
function parameterList(given: Parameters, current: Parameters): readonly Parameter[] {
  return Object.keys(defaultParameters()).flatMap((ParameterKey): Parameter[] => {
    const ParameterValue = given[ParameterKey];
    if (ParameterValue !== undefined) return [{ ParameterKey, ParameterValue }];
    return Object.hasOwn(current, ParameterKey) ? [{ ParameterKey, UsePreviousValue: true }] : [];
  });
}

/**
 * The template, in which the name of the table is written out: CloudFormation imports an existing
 * table only by a name that is not a function.
 */
function templateFor(stack: string): string {
  const template = stackTemplate();
  const table = template.Resources[TABLE]!;
  const named = { ...table, Properties: { ...table.Properties, TableName: stack } };
  // As JSON it would be longer than CloudFormation accepts.
  return templateYaml({ ...template, Resources: { ...template.Resources, [TABLE]: named } });
}

/** Whether there is a table: made alone, or left over from a stack that was deleted. */
async function tableExists(clients: AwsClients): Promise<boolean> {
  const command = new DescribeTableCommand({ TableName: clients.stack });
  const described = await clients.callUnless(isTableAbsent, "dynamodb:DescribeTable", (options) =>
    clients.dynamoDb.send(command, options),
  );
  return described !== undefined;
}
