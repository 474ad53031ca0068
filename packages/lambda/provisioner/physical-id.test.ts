import { expect, it } from "vitest";
import { isMadeUp, namespaceOwnedBy, physicalId } from "./physical-id.ts";

const STACK = {
  StackId: "arn:aws:cloudformation:eu-west-1:123456789012:stack/app/1",
  LogicalResourceId: "Limits",
};
const PLACE = { tableName: "limits", namespace: "team-a" };

it("is the same for the same resource, and another one for every other [W-64]", () => {
  const id = physicalId(STACK, PLACE);
  expect(id).toMatch(/^limits\/team-a\/limits-provisioner\/[0-9a-f]{8}$/);
  expect(physicalId({ ...STACK }, { ...PLACE })).toBe(id);
  const others = [
    physicalId({ ...STACK, StackId: `${STACK.StackId}2` }, PLACE),
    physicalId({ ...STACK, LogicalResourceId: "Limits2" }, PLACE),
    physicalId(STACK, { ...PLACE, namespace: "team-b" }),
    physicalId(STACK, { ...PLACE, tableName: "limits-2" }),
    // The same letters, cut elsewhere.
    physicalId({ StackId: `${STACK.StackId}L`, LogicalResourceId: "imits" }, PLACE),
  ];
  expect(new Set([id, ...others]).size).toBe(others.length + 1);
});

it("leads back to the namespace, of its own table only", () => {
  const id = physicalId(STACK, PLACE);
  expect(namespaceOwnedBy(id, "limits")).toBe("team-a");
  expect(namespaceOwnedBy(id, "limits-2")).toBeUndefined();
});

it("of a resource that names no namespace, leads to none", () => {
  const id = physicalId(STACK, { tableName: "limits" });
  expect(id).not.toBe("");
  expect(namespaceOwnedBy(id, "limits")).toBeUndefined();
  expect(isMadeUp(id)).toBe(false);
});

it("distinguishes ids of CloudFormation from those of the Python zae-limiter, which own nothing here", () => {
  expect(isMadeUp("app-Limits-1ABCDEFGHIJKL")).toBe(true);
  expect(isMadeUp("limits/team-a/limits-provisioner")).toBe(false);
  expect(namespaceOwnedBy("limits/team-a/limits-provisioner", "limits")).toBeUndefined();
});
