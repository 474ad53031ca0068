import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import { describe, expect, it } from "vitest";
import { ValidationError } from "zae-limiter";
import { awsAddress, findConfiguredAddress, endpointAt } from "./endpoint.ts";

const REGIONS = [
  "us-east-1",
  "us-west-2",
  "eu-central-1",
  "ap-southeast-5",
  "il-central-1",
  "mx-central-1",
  "us-gov-west-1",
  "cn-north-1",
  "cn-northwest-1",
  "us-iso-east-1",
  "us-isob-east-1",
  "eu-isoe-west-1",
  "us-isof-south-1",
  "eusc-de-east-1",
];

describe("DynamoDB's address", () => {
  it.each(REGIONS)("is in %s where the SDK finds it", (region) => {
    const { endpointProvider } = new DynamoDBClient({ region }).config;
    expect(`${awsAddress(region, {})}/`).toBe(endpointProvider({ Region: region }).url.href);
    const streams = new DynamoDBStreamsClient({ region }).config;
    expect(`${awsAddress(region, {}, "streams.dynamodb")}/`).toBe(
      streams.endpointProvider({ Region: region }).url.href,
    );
  });

  it.each(["", "local", "eu-west-1.evil.example", "EU-WEST-1", "eu west 1"])(
    "is unknown for the region %j",
    (region) => {
      expect(() => awsAddress(region, {})).toThrow(`unknown region '${region}'; pass endpointUrl`);
    },
  );

  it.each([
    ["AWS_USE_FIPS_ENDPOINT", "true", "false"],
    ["AWS_USE_DUALSTACK_ENDPOINT", "True", "false"],
    ["AWS_ACCOUNT_ID_ENDPOINT_MODE", "required", "preferred"],
  ])("is not guessed while %s is %s", (name, other, ordinary) => {
    expect(() => awsAddress("us-east-1", { [name]: other })).toThrow(`because ${name} is set`);
    expect(awsAddress("us-east-1", { [name]: ordinary })).toBe(
      "https://dynamodb.us-east-1.amazonaws.com",
    );
  });

  it("is read from the environment as the SDK reads it", () => {
    expect(findConfiguredAddress({})).toBeUndefined();
    expect(findConfiguredAddress({ AWS_ENDPOINT_URL: "http://a" })).toBe("http://a");
    expect(
      findConfiguredAddress({
        AWS_ENDPOINT_URL: "http://a",
        AWS_ENDPOINT_URL_DYNAMODB: "http://b",
      }),
    ).toBe("http://b");
    expect(
      findConfiguredAddress({
        AWS_ENDPOINT_URL_DYNAMODB: "http://b",
        AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: "true",
      }),
    ).toBeUndefined();
  });
});

describe("parsing an address", () => {
  it.each([
    [
      "https://db.example",
      { secure: true, hostname: "db.example", port: 443, host: "db.example", path: "/" },
    ],
    [
      "http://127.0.0.1:8000",
      { secure: false, hostname: "127.0.0.1", port: 8000, host: "127.0.0.1:8000", path: "/" },
    ],
    [
      "http://[::1]:8000/",
      { secure: false, hostname: "::1", port: 8000, host: "[::1]:8000", path: "/" },
    ],
    [
      "https://db.example:443/a/b",
      { secure: true, hostname: "db.example", port: 443, host: "db.example", path: "/a/b/" },
    ],
  ])("%s is accepted", (address, endpoint) => {
    expect(endpointAt(address)).toEqual(endpoint);
  });

  it.each([
    "db.example",
    "ftp://db.example",
    "http://user@db.example",
    "http://db.example?x=1",
    "http://db.example/#x",
  ])("%s is refused", (address) => {
    expect(() => endpointAt(address)).toThrow(ValidationError);
  });
});
