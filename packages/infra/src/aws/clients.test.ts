import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { AwsClients } from "./clients.ts";
import { checkedPlace } from "./place.ts";

/** What Node says of a name that cannot be resolved now. */
const UNRESOLVED = Object.assign(new Error("getaddrinfo EAI_AGAIN"), { code: "EAI_AGAIN" });

let clients: AwsClients;
beforeEach(async () => {
  clients = await AwsClients.open(checkedPlace({ endpointUrl: "http://127.0.0.1:1" }, {}));
});
afterEach(() => clients.close());

it("gives up at once if nobody can be found, as with a region that does not exist", async () => {
  const send = vi.fn<() => Promise<void>>().mockRejectedValue(UNRESOLVED);
  await expect(clients.call("sts:GetCallerIdentity", send)).rejects.toMatchObject({
    code: "ERR_LIMITER_UNAVAILABLE",
    message: expect.stringContaining("check the network, the region"),
  });
  expect(send).toHaveBeenCalledTimes(1);
});

it("goes on when names cannot be resolved for a while", async () => {
  const send = vi.fn<() => Promise<string>>().mockResolvedValue("done");
  await clients.call("sts:GetCallerIdentity", send);
  send.mockRejectedValueOnce(UNRESOLVED);
  expect(await clients.call("cloudformation:DescribeStacks", send)).toBe("done");
});
