// Addresses other than AWS's: of an engine, which has no stacks, and one where nothing listens.
import { expect, it } from "vitest";
import { describeWithEngine } from "../../limiter/test/support/engine.ts";
import { AwsClients } from "../src/aws/clients.ts";
import { resolvePlace } from "../src/aws/place.ts";
import { deleteStack, deployStack, listStacks } from "../src/index.ts";

describeWithEngine("an engine of DynamoDB", (engine) => {
  it.each([
    ["deployStack", deployStack, "sts:GetCallerIdentity"],
    ["deleteStack", deleteStack, "cloudformation:DescribeStacks"],
    ["listStacks", listStacks, "cloudformation:DescribeStacks"],
  ])("has no stacks, says %s", async (_, call, action) => {
    const { endpointUrl } = engine();
    await expect(call({ region: "eu-west-1", endpointUrl })).rejects.toMatchObject({
      code: "ERR_LIMITER_STACK_OPERATION",
      message: expect.stringContaining(
        `${endpointUrl} does not know ${action}: a DynamoDB engine has tables and no stacks.`,
      ),
    });
  });
});

it.each([
  ["three times before the first answer", 0, 3],
  ["longer after the first answer", 1, 8],
])("asks %s", async (_, answers, attempts) => {
  const endpointUrl = "http://127.0.0.1:1";
  const clients = await AwsClients.open(resolvePlace({ region: "eu-west-1", endpointUrl }));
  for (let answer = 0; answer < answers; answer += 1) await clients.call("sts:Any", async () => {});
  let asked = 0;
  const unreachable = Object.assign(new Error("getaddrinfo EAI_AGAIN"), { code: "EAI_AGAIN" });
  const call = clients.call("sts:Any", async () => {
    asked += 1;
    throw unreachable;
  });
  await expect(call).rejects.toMatchObject({ code: "ERR_LIMITER_UNAVAILABLE" });
  expect(asked).toBe(attempts);
});
