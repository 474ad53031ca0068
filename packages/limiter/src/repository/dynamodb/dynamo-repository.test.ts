import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ValidationError } from "../../core/errors.ts";
import { systemClock } from "../system-clock.ts";
import { openLeanTransport } from "./transport/lean/lean-transport.ts";
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

it("is opened, not constructed", () => {
  const Constructed = DynamoRepository as unknown as new (namespace: string) => unknown;
  expect(() => new Constructed("app")).toThrow(
    "Invalid call: new DynamoRepository(…) opens nothing; use await DynamoRepository.open(namespace)",
  );
});

it("refuses an unknown option, and names the nearest, before it sends a request", async () => {
  const endpoint = { endpoint: "http://127.0.0.1:1" } as object;
  const wrong =
    "Invalid endpoint: is not an option of DynamoRepository.open; did you mean endpointUrl?";
  await expect(DynamoRepository.open("app", endpoint)).rejects.toThrow(wrong);
  await expect(DynamoRepository.builder().options(endpoint).build()).rejects.toThrow(wrong);
  const surroundings = { environment: {}, clock: systemClock };
  await expect(openLeanTransport(endpoint, surroundings)).rejects.toThrow(
    "Invalid endpoint: is not an option of leanTransport; did you mean endpointUrl?",
  );
});

describe("without a region", () => {
  /** The settings of the machine that runs the tests must not be found. */
  beforeEach(() => {
    for (const name of Object.keys(process.env).filter((variable) => variable.startsWith("AWS_")))
      vi.stubEnv(name, undefined);
    vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    vi.stubEnv("AWS_CONFIG_FILE", "/dev/null");
    vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
  });
  afterEach(() => vi.unstubAllEnvs());

  it.each([
    ["the SDK", () => DynamoRepository.open("app", { provisioning: "never" })],
    [
      "the lean transport",
      () => openLeanTransport({}, { environment: process.env, clock: systemClock }),
    ],
  ])("%s says where one can be named", async (_, open) => {
    const error: unknown = await open().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ValidationError);
    expect(error).toMatchObject({ code: "ERR_LIMITER_NO_REGION" });
    expect((error as ValidationError).message).toBe(
      "Invalid region: none was found: set AWS_REGION, pass the option region, name it in the URL, as in dynamodb://eu-west-1/my-stack, or pass --region to the command line",
    );
  });

  it("says what else kept it from being found", async () => {
    const client = {
      send: async () => expect.fail("it was called"),
      config: { region: () => Promise.reject(new Error("the file cannot be parsed")) },
    };
    await expect(DynamoRepository.open("app", { client, provisioning: "never" })).rejects.toThrow(
      "Invalid region: none was found (the file cannot be parsed): set AWS_REGION",
    );
  });
});
