import { describe, expect, it } from "vitest";
import { publicApi, type PublicMember } from "./public-members.ts";

describe("what an editor shows", () => {
  const members = publicApi();
  const names = new Set(members.map(({ name }) => name));

  it("every public member has a doc comment", () => {
    expect(members.length).toBeGreaterThan(500);
    // A table of weights; and values as DynamoDB writes them, which lose their comments when built.
    const named = members.filter(({ name }) => !/^(?:METERING|AttributeValue)\./.test(name));
    expect(list(named.filter(({ comment }) => !/\w/.test(comment.split(/@\w/)[0]!)))).toEqual([]);
  });

  it("the comment of every method and function has an example", () => {
    const methods = members.filter(({ isCallable }) => isCallable);
    expect(list(methods.filter(({ comment }) => !/@example\s[\s*]*\S/.test(comment)))).toEqual([]);
    expect(methods.length).toBeGreaterThan(150);
  });

  it.each([
    "RateLimit.refillAmount",
    "Limit.perMinute",
    "Repository.setLimits",
    "RepositoryPort.consume",
    "DynamoRepository.open",
    "DynamoOptions.endpointUrl",
    "StoreRepository.resolveLimits",
    "AcquireResult.granted",
    "RateLimiterUnavailable.stackName",
    "By.principal",
    "ManualClock.advance",
  ])("finds %s", (name) => {
    expect(names).toContain(name);
  });

  it("leaves out what is private or internal", () => {
    expect([...names].filter((name) => /#|Lease\.(create|finish)$/.test(name))).toEqual([]);
  });
});

function list(members: readonly PublicMember[]): readonly string[] {
  return members.map(({ name, place }) => `${name} (${place})`);
}
