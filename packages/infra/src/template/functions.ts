import {
  getAtt,
  ref,
  sub,
  type Properties,
  type Resources,
  type Value,
} from "../cloudformation/template.ts";
import type { ConditionName } from "./conditions.ts";

/** The parts of a stack that are functions of Lambda. */
export type FunctionPart = "Aggregator" | "Provisioner";

/** The last part of the name of a function. */
export function functionSuffix(part: FunctionPart): string {
  return part === "Aggregator" ? "-aggregator" : "-limits-provisioner";
}

/** The logical id of a function. */
export function functionId(part: FunctionPart): string {
  return `${part}Function`;
}

/** The ARN of the log group of a function. */
export function logsArn(part: FunctionPart): Value {
  return getAtt(logsId(part), "Arn");
}

/** The condition under which there is a function. */
export function functionCondition(part: FunctionPart): ConditionName {
  return `Deploy${part}Lambda`;
}

/** A function and its log group; `properties` are those in which functions differ. */
export function functionResources(part: FunctionPart, properties: Properties): Resources {
  const Condition = functionCondition(part);
  const name = `\${AWS::StackName}${functionSuffix(part)}`;
  return {
    [logsId(part)]: {
      Type: "AWS::Logs::LogGroup",
      Condition,
      Properties: {
        LogGroupName: sub(`/aws/lambda/${name}`),
        RetentionInDays: ref("LogRetentionDays"),
      },
    },
    [functionId(part)]: {
      Type: "AWS::Lambda::Function",
      Condition,
      Properties: {
        FunctionName: sub(name),
        Runtime: "nodejs22.x",
        Architectures: ["arm64"],
        Handler: "index.handler",
        Code: { S3Bucket: ref("CodeBucket"), S3Key: ref(`${part}CodeKey`) },
        LoggingConfig: { LogGroup: ref(logsId(part)) },
        ...properties,
      },
    },
  };
}

function logsId(part: FunctionPart): string {
  return `${part}LogGroup`;
}
