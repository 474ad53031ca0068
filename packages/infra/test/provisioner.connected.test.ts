// The provisioner of a stack, on a scripted AWS; tables are those of a real engine.
import { expect, it } from "vitest";
import { lambdaPackage, updateLambda } from "../src/index.ts";
import { freshStack, getPlace, type TestStack } from "./support/deployment.ts";
import { describeWithAws } from "./support/describe-with-aws.ts";

describeWithAws("the provisioner of a stack", (aws) => {
  const getFunction = (stack: TestStack): Readonly<Record<string, unknown>> | undefined =>
    scripted(stack).resources.get("ProvisionerFunction")?.properties;
  const scripted = ({ stack }: TestStack) => aws().cloudFormation.stack(stack)!;

  it("is deployed with its real code, named by the code's own hash [W-64]", async () => {
    const stack = freshStack(aws());
    const { outputs } = await stack.deploy();
    const key = await getCodeKey("provisioner");
    expect(getFunction(stack)).toMatchObject({ Code: { S3Key: key } });
    const bucket = aws().s3.buckets.get(`zae-limiter-code-${aws().account}-eu-west-1`)!;
    const { content } = await lambdaPackage("provisioner");
    expect(Buffer.compare(bucket.objects.get(key)!, content)).toBe(0);
    expect(getFunction(stack)).toMatchObject({
      Handler: "index.handler",
      Environment: { Variables: { TABLE_NAME: stack.stack } },
    });
    expect(outputs).toMatchObject({
      ProvisionerFunctionName: `${stack.stack}-limits-provisioner`,
      ProvisionerFunctionArn: expect.stringMatching(`:function:${stack.stack}-limits-provisioner$`),
    });
  });

  it("is not added to a stack that has none, unless an option asks for it", async () => {
    const stack = freshStack(aws());
    await stack.deploy({ stackOptions: { enableProvisioner: false, roleNameFormat: "team-{}" } });
    expect((await stack.deploy()).outcome).toBe("unchanged");
    await updateLambda(getPlace(stack));
    expect(getFunction(stack)).toBeUndefined();

    const { changes } = await stack.deploy({ stackOptions: { enableProvisioner: true } });
    expect(changes.map(({ action, logicalId }) => `${action} ${logicalId}`)).toEqual([
      "add ProvisionerLogGroup",
      "add ProvisionerFunction",
      "add ProvisionerRole",
    ]);
    expect(scripted(stack).resources.get("ProvisionerRole")?.physicalId).toBe(
      `team-${stack.stack}-prov`,
    );
    expect(getFunction(stack)).toMatchObject({ Code: { S3Key: await getCodeKey("provisioner") } });
  });

  it("is not added by new code for the aggregator", async () => {
    const stack = freshStack(aws());
    await stack.deploy({ stackOptions: { enableProvisioner: false } });
    const { target } = scripted(stack);
    // As a deployment of the template without code leaves it.
    const parameters = { ...target!.parameters, EnableProvisioner: "true", ProvisionerCodeKey: "" };
    scripted(stack).target = { ...target!, parameters };
    await updateLambda(getPlace(stack));
    expect(scripted(stack).target?.parameters["ProvisionerCodeKey"]).toBe("");
    expect(getFunction(stack)).toBeUndefined();
  });

  it("gets the code of this version together with the aggregator", async () => {
    const stack = freshStack(aws());
    await stack.deploy();
    const { target, resources } = scripted(stack);
    const old = "zae-limiter/old.zip";
    const parameters = { ...target!.parameters, AggregatorCodeKey: old, ProvisionerCodeKey: old };
    scripted(stack).target = { ...target!, parameters };
    for (const id of ["AggregatorFunction", "ProvisionerFunction"]) {
      const declared = resources.get(id)!;
      declared.properties = { ...declared.properties, Code: { S3Key: old } };
    }
    await updateLambda(getPlace(stack));
    expect(scripted(stack).target?.parameters).toMatchObject({
      AggregatorCodeKey: await getCodeKey("aggregator"),
      ProvisionerCodeKey: await getCodeKey("provisioner"),
    });
    expect(getFunction(stack)).toMatchObject({ Code: { S3Key: await getCodeKey("provisioner") } });
  });
});

/** Where the code of a function is put: the same code has the same key. */
async function getCodeKey(name: "aggregator" | "provisioner"): Promise<string> {
  return `zae-limiter/${(await lambdaPackage(name)).sha256}/${name}.zip`;
}
