import { afterAll, expect, it, vi } from "vitest";
import { PermissionDenied } from "zae-limiter";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { useLeanCalls } from "../../../../../test/support/lean-calls.ts";
import { systemClock } from "../../../system-clock.ts";
import { openLeanTransport } from "./lean-transport.ts";

vi.mock("@aws-sdk/client-dynamodb", () => {
  throw new Error("Cannot find package '@aws-sdk/client-dynamodb'");
});
afterAll(() => vi.doUnmock("@aws-sdk/client-dynamodb"));

const lean = useLeanCalls();

it("works with the environment's credentials and region, without the SDK", async () => {
  const environment = {
    AWS_ACCESS_KEY_ID: "key",
    AWS_SECRET_ACCESS_KEY: "secret",
    AWS_REGION: "eu-west-1",
  };
  const transport = await openLeanTransport(
    { endpointUrl: lean.server.endpointUrl },
    { environment, clock: systemClock },
  );
  expect(await lean.call(transport)).toEqual({});
  expect(lean.server.seen[0]!.headers.authorization).toContain("Credential=key/");
  transport.close();
});

it("carries a whole repository without the SDK", async () => {
  const transport = await lean.open();
  const repository = await DynamoRepository.open("app", {
    transport,
    provisioning: "never",
    create: false,
  });
  expect(await repository.ping()).toBe(true);
  expect(new Set(lean.server.seen.map(({ headers }) => headers["x-amz-target"]))).toContain(
    "DynamoDB_20120810.GetItem",
  );
  await repository.close();
});

it("works with an engine on this machine, with nothing set", async () => {
  const transport = await openLeanTransport(
    { endpointUrl: lean.server.endpointUrl },
    { environment: {}, clock: systemClock },
  );
  expect(await lean.call(transport)).toEqual({});
  transport.close();
});

it("says that the SDK would look elsewhere when nothing is set", async () => {
  const opening = openLeanTransport(
    { region: "eu-west-1" },
    { environment: {}, clock: systemClock },
  );
  await expect(opening).rejects.toThrow(PermissionDenied);
  await expect(opening).rejects.toThrow("npm install @aws-sdk/client-dynamodb");
});
