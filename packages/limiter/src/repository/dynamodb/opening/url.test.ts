import { describe, expect, it } from "vitest";
import { dynamoOptions, tableOptions } from "./url.ts";

describe("a DynamoDB URL", () => {
  it("names region, stack, endpoint and provisioning", () => {
    expect(dynamoOptions("dynamodb://eu-west-1/my-stack")).toEqual({
      region: "eu-west-1",
      stack: "my-stack",
    });
    expect(
      dynamoOptions("dynamodb://eu-west-1/s?endpoint=http://127.0.0.1:8000&provisioning=never"),
    ).toEqual({
      region: "eu-west-1",
      stack: "s",
      endpointUrl: "http://127.0.0.1:8000",
      provisioning: "never",
    });
    expect(dynamoOptions("dynamodb://")).toEqual({});
    expect(tableOptions("dynamodb://eu-west-1/s?provisioning=table")).toEqual({
      region: "eu-west-1",
      stack: "s",
    });
  });

  it.each(["dynamodb:my-stack", "dynamodb://a/b/c", "dynamodb://eu-west-1/s?endpont=x"])(
    "refuses %s",
    (url) => {
      expect(() => dynamoOptions(url)).toThrow("Invalid url");
    },
  );
});
