// Made by `npm run declare`.

declare module "declared/@zae-limiter/infra/cdk" {
  import * as ConstructsModule from "constructs";
  import { aws_iam } from "aws-cdk-lib";
  import { StackOptions } from "declared/zae-limiter/dynamodb";
  export {};
  export class ZaeLimiter extends Construct {
    readonly tableName: string;
    readonly tableArn: string;
    readonly provisionerArn: string | undefined;
    constructor(scope: ConstructsModule.Construct, id: string, props?: ZaeLimiterProps);
    grantAcquire(grantee: aws_iam.IGrantable): void;
    grantFullAccess(grantee: aws_iam.IGrantable): void;
    grantReadOnly(grantee: aws_iam.IGrantable): void;
  }
  export interface ZaeLimiterProps extends Omit<StackOptions, keyof typeof ELSEWHERE> {
    readonly stackName?: string;
  }
  const Construct: typeof ConstructsModule.Construct;
  const ELSEWHERE: {
    readonly auditRetentionDays: "is stored in the table: call setSystemDefaults";
    readonly tags: "are the app's: call Tags.of(stack).add";
  };
}
