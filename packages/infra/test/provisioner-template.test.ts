import { provisionerStatements, stackTemplate } from "@zae-limiter/infra";
import { describe, expect, it } from "vitest";
import type { Properties } from "../src/cloudformation/template.ts";
import { resolveTemplate } from "../src/options/resolve-template.ts";

const CODE = {
  CodeBucket: "code",
  AggregatorCodeKey: "aggregator.zip",
  ProvisionerCodeKey: "provisioner.zip",
};

/** The properties of a resource, as they are with some parameters. */
function readProperties(
  id: string,
  parameters: Readonly<Record<string, string>> = CODE,
): Properties {
  return resolveTemplate(parameters).Resources[id]!.Properties;
}

describe("the provisioner in the template [W-64]", () => {
  it("has real code, time for many entities, and the table", () => {
    expect(readProperties("ProvisionerFunction")).toMatchObject({
      FunctionName: { "Fn::Sub": "${AWS::StackName}-limits-provisioner" },
      Runtime: "nodejs22.x",
      Architectures: ["arm64"],
      Handler: "index.handler",
      Code: { S3Bucket: "code", S3Key: "provisioner.zip" },
      Timeout: 900,
      MemorySize: 256,
      Role: { "Fn::GetAtt": ["ProvisionerRole", "Arn"] },
      Environment: { Variables: { TABLE_NAME: { Ref: "RateLimitsTable" } } },
    });
    expect(readProperties("ProvisionerFunction")).not.toHaveProperty(
      "ReservedConcurrentExecutions",
    );
    expect(JSON.stringify(stackTemplate())).not.toContain("ZipFile");
  });

  it.each([
    ["without code", { ...CODE, ProvisionerCodeKey: "" }],
    ["without a bucket", { ...CODE, CodeBucket: "" }],
    ["that is switched off", { ...CODE, EnableProvisioner: "false" }],
    ["without a role", { ...CODE, EnableIAM: "false" }],
  ])("is left out whole %s", (_, parameters: Readonly<Record<string, string>>) => {
    const { Resources, Outputs } = resolveTemplate(parameters);
    const ids = [...Object.keys(Resources), ...Object.keys(Outputs)];
    expect(ids.filter((id) => id.includes("Provisioner"))).toEqual([]);
  });

  it("needs no aggregator, and exports its bucket without one too", () => {
    const parameters = { ...CODE, EnableAggregator: "false", AggregatorCodeKey: "" };
    const { Resources, Outputs } = resolveTemplate(parameters);
    expect(Object.keys(Resources)).toContain("ProvisionerFunction");
    expect(Outputs["CodeBucketName"]!.Value).toBe("code");
  });

  it("has a role with the name, the boundary and the rights that it needs", () => {
    const names = { ProvisionerRoleName: "team-limits-prov", PermissionBoundary: "bound" };
    const { RoleName, PermissionsBoundary, AssumeRolePolicyDocument, Policies } = readProperties(
      "ProvisionerRole",
      { ...CODE, ...names },
    );
    expect(RoleName).toBe("team-limits-prov");
    expect(JSON.stringify(PermissionsBoundary)).toContain("policy/bound");
    expect(JSON.stringify(AssumeRolePolicyDocument)).toContain("lambda.amazonaws.com");
    const tableArn = { "Fn::GetAtt": ["RateLimitsTable", "Arn"] };
    expect(Policies).toEqual([
      {
        PolicyName: "provisioner",
        PolicyDocument: {
          Version: "2012-10-17",
          Statement: [
            ...provisionerStatements(tableArn),
            {
              Sid: "Log",
              Effect: "Allow",
              Action: ["logs:CreateLogStream", "logs:PutLogEvents"],
              Resource: { "Fn::GetAtt": ["ProvisionerLogGroup", "Arn"] },
            },
          ],
        },
      },
    ]);
    expect(readProperties("ProvisionerRole")["RoleName"]).toEqual({
      "Fn::Sub": "${AWS::StackName}-prov",
    });
  });
});
