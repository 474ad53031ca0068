import { expect, it } from "vitest";
import { DynamoRepository } from "./dynamo-repository.ts";

it("checks the time to live of its cache before it calls DynamoDB", async () => {
  const transport = { call: () => expect.fail("it was called"), close: () => {} };
  const opening = DynamoRepository.open("app", {
    transport,
    provisioning: "never",
    configCacheTtlMs: -1,
  });
  await expect(opening).rejects.toThrow("configCacheTtlMs");
});
