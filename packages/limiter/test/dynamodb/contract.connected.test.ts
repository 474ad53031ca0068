import { afterAll, beforeAll, describe, it } from "vitest";
import { DynamoRepository, type DynamoTransport } from "zae-limiter/dynamodb";
import { repositoryContract } from "zae-limiter/testing";
import { sdkTransport } from "../../src/repository/dynamodb/sdk-transport.ts";
import { describeWithEngine, freshTableName } from "./engine.ts";

describeWithEngine("the contract of every backend", (engine) => {
  // One client for all tests: making one costs more than most tests.
  let transport: DynamoTransport;
  beforeAll(async () => {
    ({ transport } = await sdkTransport({ endpointUrl: engine().endpointUrl, region: "us-east-1" }));
  });
  afterAll(() => transport.close());

  repositoryContract(
    "DynamoRepository",
    (clock) => DynamoRepository.open(undefined, { stack: freshTableName(), transport, provisioning: "table", stream: false, clock }),
    { describe, it },
  );
});
