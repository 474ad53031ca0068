import { afterAll, beforeAll, describe, it } from "vitest";
import { DynamoRepository, type DynamoTransport } from "zae-limiter/dynamodb";
import { repositoryContract } from "zae-limiter/testing";
import { freshTableName } from "../../support/engine.ts";
import { describeWithTransports, openTransport } from "../../support/transports.ts";

describeWithTransports("the contract of every backend", (engine, name) => {
  // One client for all tests: making one costs more than most tests.
  let transport: DynamoTransport;
  beforeAll(async () => {
    transport = await openTransport(name, engine());
  });
  afterAll(() => transport.close());

  repositoryContract(
    "DynamoRepository",
    (clock) =>
      DynamoRepository.open(undefined, {
        stack: freshTableName(),
        transport,
        provisioning: "table",
        stream: false,
        clock,
      }),
    { describe, it },
  );
});
