import { describe, expect, it } from "vitest";
import { clientConfiguration } from "./sdk-transport.ts";

describe("the client's configuration", () => {
  it("retries nothing by itself", () => {
    expect(clientConfiguration({ region: "eu-west-1", endpointUrl: undefined }, {})).toMatchObject({
      region: "eu-west-1",
      maxAttempts: 1,
    });
  });

  it("looks for no credentials on a local engine, and for all others as the SDK does", () => {
    const local = { region: undefined, endpointUrl: "http://127.0.0.1:8000" };
    expect(clientConfiguration(local, {})).toHaveProperty("credentials");
    expect(clientConfiguration(local, { AWS_PROFILE: "mine" })).not.toHaveProperty("credentials");
    expect(
      clientConfiguration({ region: undefined, endpointUrl: "https://vpce.example.com" }, {}),
    ).not.toHaveProperty("credentials");
    expect(
      clientConfiguration({ region: undefined, endpointUrl: undefined }, {}),
    ).not.toHaveProperty("credentials");
  });
});
