/*
 * The guide's page on permissions shows the policies of the code, to copy; `vitest -u` updates the
 * page. The policies that only the page has are checked with the same simulator.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { runSimulation } from "@cloud-copilot/iam-simulate";
import { describe, expect, it } from "vitest";
import { runnerStatements } from "../src/policies/aggregator-statements.ts";
import {
  policyDocument,
  POLICY_KINDS,
  type PolicyDocument,
} from "../src/policies/policy-document.ts";
import { provisionerStatements } from "../src/policies/provisioner-statements.ts";

const PAGE = fileURLToPath(new URL("../../../docs/guide/iam.md", import.meta.url));
const page = readFileSync(PAGE, "utf8");
const BLOCK = /<!-- policy (\S+) -->\n```json\n(.*?)```/gs;

const ACCOUNT = "111122223333";
const TABLE = `arn:aws:dynamodb:eu-west-1:${ACCOUNT}:table/limits`;

/** The policies that the page takes from the code. */
const generated: Readonly<Record<string, PolicyDocument>> = {
  ...Object.fromEntries(POLICY_KINDS.map((kind) => [kind, policyDocument(kind, TABLE)])),
  aggregator: {
    Version: "2012-10-17",
    Statement: runnerStatements({
      tableArn: TABLE,
      streamArn: `${TABLE}/stream/*`,
      archiveBucketArn: "arn:aws:s3:::my-archive",
    }),
  },
  provisioner: { Version: "2012-10-17", Statement: provisionerStatements(TABLE) },
};

it("the page shows every policy as the code has it", async () => {
  const shown = new Set([...page.matchAll(BLOCK)].map(([, name]) => name!));
  expect(Object.keys(generated).filter((name) => !shown.has(name))).toEqual([]);
  const asGenerated = page.replace(BLOCK, (block, name: string) => {
    const policy = generated[name];
    if (policy === undefined) return block;
    return `<!-- policy ${name} -->\n\`\`\`json\n${readable(policy)}\n\`\`\``;
  });
  await expect(asGenerated).toMatchFileSnapshot(PAGE);
});

describe("the policies that only the page has", () => {
  it.each([
    [
      "deployment",
      "cloudformation:CreateChangeSet",
      `cloudformation:eu-west-1:${ACCOUNT}:stack/limits/1`,
    ],
    [
      "deployment",
      "cloudformation:ExecuteChangeSet",
      `cloudformation:eu-west-1:${ACCOUNT}:stack/limits/1`,
    ],
    ["deployment", "dynamodb:CreateTable", `dynamodb:eu-west-1:${ACCOUNT}:table/limits`],
    [
      "deployment",
      "lambda:UpdateFunctionCode",
      `lambda:eu-west-1:${ACCOUNT}:function:limits-aggregator`,
    ],
    ["deployment", "sqs:CreateQueue", `sqs:eu-west-1:${ACCOUNT}:limits-aggregator-dlq`],
    [
      "deployment",
      "cloudwatch:PutMetricAlarm",
      `cloudwatch:eu-west-1:${ACCOUNT}:alarm:limits-aggregator-dlq-alarm`,
    ],
    // CloudFormation gives the tags of a stack to its event source too.
    [
      "deployment",
      "lambda:TagResource",
      `lambda:eu-west-1:${ACCOUNT}:event-source-mapping:11111111-2222-3333-4444-555555555555`,
    ],
    // Application Auto Scaling needs its own role, of which an account has one.
    [
      "deployment",
      "iam:CreateServiceLinkedRole",
      `iam::${ACCOUNT}:role/aws-service-role/dynamodb.application-autoscaling.amazonaws.com/AWSServiceRoleForApplicationAutoScaling_DynamoDBTable`,
    ],
    ["deployment", "iam:DeleteRolePermissionsBoundary", `iam::${ACCOUNT}:role/limits-aggr`],
    ["deployment", "iam:UntagPolicy", `iam::${ACCOUNT}:policy/limits-acq`],
    ["deployment", "iam:CreateRole", `iam::${ACCOUNT}:role/limits-aggr`],
    ["deployment", "iam:PassRole", `iam::${ACCOUNT}:role/limits-aggr`],
    ["deployment", "iam:PassRole", `iam::${ACCOUNT}:role/limits-prov`],
    [
      "deployment",
      "lambda:CreateFunction",
      `lambda:eu-west-1:${ACCOUNT}:function:limits-limits-provisioner`,
    ],
    [
      "deployment",
      "logs:PutRetentionPolicy",
      `logs:eu-west-1:${ACCOUNT}:log-group:/aws/lambda/limits-limits-provisioner`,
    ],
    [
      "status",
      "cloudformation:ListStackResources",
      `cloudformation:eu-west-1:${ACCOUNT}:stack/limits/1`,
    ],
    ["deployment", "iam:CreatePolicy", `iam::${ACCOUNT}:policy/limits-ns-acq`],
    [
      "deployment",
      "s3:PutObject",
      `s3:::zae-limiter-code-${ACCOUNT}-eu-west-1/zae-limiter/0/aggregator.zip`,
    ],
  ])("%s allows %s on %s", async (name, action, resource) => {
    expect(await decide(name, action, resource)).toBe("Allowed");
  });

  it.each([
    [
      "deployment",
      "cloudformation:DeleteStack",
      `cloudformation:eu-west-1:${ACCOUNT}:stack/other/1`,
    ],
    ["deployment", "dynamodb:DeleteTable", `dynamodb:eu-west-1:${ACCOUNT}:table/other`],
    ["deployment", "iam:CreateRole", `iam::${ACCOUNT}:role/admin`],
    ["deployment", "iam:CreateUser", `iam::${ACCOUNT}:user/limits-user`],
    ["status", "cloudformation:DeleteStack", `cloudformation:eu-west-1:${ACCOUNT}:stack/limits/1`],
    [
      "status",
      "lambda:GetFunctionConfiguration",
      `lambda:eu-west-1:${ACCOUNT}:function:limits-aggregator`,
    ],
  ])("%s denies %s on %s", async (name, action, resource) => {
    expect(await decide(name, action, resource)).toBe("ImplicitlyDenied");
  });
});

/** JSON in lines of at most 130 columns, each value on one line if it fits. */
function readable(value: unknown, indent = ""): string {
  const flat = JSON.stringify(value, undefined, 1)
    .replaceAll(/\n *(?=\])|(?<=\[)\n */g, "")
    .replaceAll(/\n */g, " ");
  if (typeof value !== "object" || value === null || indent.length + flat.length < 124) return flat;
  const inner = `${indent}  `;
  const lines = Array.isArray(value)
    ? value.map((item) => readable(item, inner))
    : Object.entries(value).map(([key, item]) => `"${key}": ${readable(item, inner)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return `${open}\n${inner}${lines.join(`,\n${inner}`)}\n${indent}${close}`;
}

/** What the simulator says about a policy of the page; it also checks the policy's grammar. */
async function decide(name: string, action: string, resource: string): Promise<string> {
  const block = [...page.matchAll(BLOCK)].find(([, shown]) => shown === name)!;
  const result = await runSimulation(
    {
      request: {
        principal: `arn:aws:iam::${ACCOUNT}:role/operator`,
        action,
        resource: { resource: `arn:aws:${resource}`, accountId: ACCOUNT },
        contextVariables: {},
      },
      identityPolicies: [{ name, policy: JSON.parse(block[2]!) }],
      serviceControlPolicies: [],
      resourceControlPolicies: [],
    },
    {},
  );
  if (result.resultType === "error") throw new Error(JSON.stringify(result.errors));
  return result.overallResult;
}
