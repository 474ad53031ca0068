import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { getEventListeners } from "node:events";
import { Agent as SecureAgent, createServer as createSecureServer } from "node:https";
import { describe, expect, it, vi } from "vitest";
import {
  DynamoRepository,
  type DynamoTransport,
  type ObservedTransport,
} from "zae-limiter/dynamodb";
import { CREDENTIALS, REGION, useLeanCalls } from "../../../../../test/support/lean-calls.ts";
import { refuse, reply, startScriptedServer } from "../../../../../test/support/scripted-server.ts";

import { classifyError } from "../failure.ts";
import { sdkTransport, wrapClient } from "../sdk-transport.ts";
import { Signer } from "./signature.ts";

const lean = useLeanCalls();

/** A client of the caller's, and options that say nothing: its stream is where its table is. */
const LOCAL = { region: REGION, credentials: CREDENTIALS };
const NOWHERE = { region: undefined, endpointUrl: undefined };

describe("a request", () => {
  it("carries its operation, its length and a signature over what arrives", async () => {
    const lent = { ...CREDENTIALS, sessionToken: "token" };
    const transport = await lean.open({
      endpointUrl: `${lean.server.endpointUrl}/a%20b//c`,
      credentials: lent,
    });
    await lean.call(transport, { Name: "Zoë 🙂" });
    const { path, headers, body } = lean.server.seen[0]!;
    const target = "DynamoDB_20120810.UpdateItem";
    const scope = { host: headers.host!, path, region: REGION };
    const { date, authorization } = new Signer(scope).sign({
      credentials: lent,
      target,
      body,
      nowMs: lean.clock.now(),
    });
    expect(JSON.parse(body)).toEqual({ Name: "Zoë 🙂" });
    expect(headers).toMatchObject({
      authorization,
      "x-amz-date": date,
      "x-amz-target": target,
      "x-amz-security-token": "token",
    });
    expect(headers).toMatchObject({
      "content-type": "application/x-amz-json-1.0",
      "accept-encoding": "identity",
    });
    expect(headers["content-length"]).toBe(String(Buffer.byteLength(body)));
    expect(path).toBe("/a%20b//c/");
  });

  it("about a stream is one of the service of streams, as the SDK sends it", async () => {
    const { endpointUrl } = lean.server;
    const { transport: sdk } = await sdkTransport({ region: REGION, endpointUrl });
    const client = new DynamoDBClient({ ...LOCAL, endpoint: endpointUrl });
    const { transport: wrapped } = await wrapClient(client, NOWHERE);
    const { signal } = new AbortController();
    for (const transport of [sdk, wrapped, await lean.open({ endpointUrl })]) {
      await transport.call("GetRecords", { ShardIterator: "here" }, { signal });
      await lean.call(transport);
    }
    sdk.close();
    wrapped.close();
    client.destroy();
    const targets = lean.server.seen.map(({ headers }) => headers["x-amz-target"]);
    const both = ["DynamoDBStreams_20120810.GetRecords", "DynamoDB_20120810.UpdateItem"];
    expect(targets).toEqual([...both, ...both, ...both]);
    expect(lean.server.seen[4]!.body).toBe(lean.server.seen[0]!.body);
  });

  it.each(["", "/", "/prefix", "/prefix/"])(
    "goes to the path that the SDK takes for an address that ends in %j",
    async (path) => {
      const endpointUrl = lean.server.endpointUrl + path;
      const { transport: sdk } = await sdkTransport({ region: REGION, endpointUrl });
      await lean.call(sdk);
      sdk.close();
      await lean.call(await lean.open({ endpointUrl }));
      expect(lean.server.seen[0]!.path).toBe(lean.server.seen[1]!.path);
    },
  );

  it("is signed and sent over TLS by an agent of the caller's, which stays open", async () => {
    // A pre-shared key takes the place of a certificate.
    const psk = { psk: Buffer.from("shared"), identity: "test" };
    const common = { ciphers: "PSK", maxVersion: "TLSv1.2" } as const;
    await lean.serve(
      await startScriptedServer(createSecureServer({ ...common, pskCallback: () => psk.psk })),
    );
    const agent = new SecureAgent({
      ...common,
      keepAlive: true,
      checkServerIdentity: () => undefined,
      pskCallback: () => psk,
    });
    const transport = await lean.open({
      endpointUrl: lean.server.endpointUrl.replace("http:", "https:"),
      agent,
    });
    expect(await lean.call(transport)).toEqual({});
    transport.close();
    expect(lean.server.sockets.size).toBe(1);
    agent.destroy();
  });
});

describe("a clock that is wrong", () => {
  it.each([
    { name: "RequestTimeTooSkewed", aheadMs: 3_600_000 },
    { name: "RequestExpired", aheadMs: 86_400_000 },
    { name: "RequestInTheFuture", aheadMs: -3_600_000 },
    {
      name: "InvalidSignatureException",
      aheadMs: 3_600_000,
      details: { message: "Signature expired: 1 is now earlier than 2" },
    },
    {
      name: "InvalidSignatureException",
      aheadMs: -3_600_000,
      details: { message: "Signature not yet current: 2 is still later than 1" },
    },
  ])(
    "costs one attempt, and again when it is set right: $name",
    async ({ aheadMs, ...refusal }) => {
      const transport = await lean.open();
      let serverAheadMs = aheadMs;
      checkTimes(() => serverAheadMs, refusal);
      expect(classifyError(await lean.failure(transport))).toMatchObject({
        kind: "unavailable",
        ambiguous: false,
      });
      expect(await lean.call(transport)).toEqual({});
      serverAheadMs = 0;
      expect(classifyError(await lean.failure(transport))).toMatchObject({
        kind: "unavailable",
        ambiguous: false,
      });
      expect(await lean.call(transport)).toEqual({});
    },
  );

  it("is not assumed when a signature is wrong for another reason", async () => {
    const transport = await lean.open();
    lean.server.answer = (outgoing) =>
      refuse(outgoing, "InvalidSignatureException", {
        headers: { date: new Date(0).toUTCString() },
        details: { message: "does not match" },
      });
    expect(classifyError(await lean.failure(transport)).kind).toBe("credentials");
    lean.server.answer = (outgoing) => reply(outgoing, {});
    await lean.call(transport);
    expect(lean.server.seen[1]!.headers["x-amz-date"]).toBe("20261115T000000Z");
  });
});

describe("credentials", () => {
  it("are fetched again, once, when the service calls them expired", async () => {
    let count = 0;
    const find = vi.fn(async () => ({ ...CREDENTIALS, sessionToken: `token-${(count += 1)}` }));
    const transport = await lean.open({ credentials: find });
    lean.server.answer = (outgoing, { headers }) =>
      headers["x-amz-security-token"] === "token-1"
        ? refuse(outgoing, "ExpiredTokenException")
        : reply(outgoing, {});
    const failures = await Promise.all(
      Array.from({ length: 8 }, async () => lean.failure(transport)),
    );
    expect(new Set(failures.map(({ name }) => name))).toEqual(new Set(["ExpiredTokenException"]));
    await Promise.all(Array.from({ length: 8 }, async () => lean.call(transport)));
    expect(find.mock.calls).toEqual([[{}], [{ forceRefresh: true }]]);
  });

  it("that expired only by a wrong clock are kept once the server's time is known", async () => {
    const expiration = new Date(lean.clock.now() + 3_600_000);
    const find = vi.fn(async () => ({ ...CREDENTIALS, expiration }));
    const transport = await lean.open({ credentials: find });
    lean.clock.set(lean.clock.now() + 7_200_000);
    checkTimes(() => -7_200_000, { name: "RequestInTheFuture" });
    await lean.failure(transport);
    find.mockClear();
    for (let count = 0; count < 10; count += 1) expect(await lean.call(transport)).toEqual({});
    expect(find).not.toHaveBeenCalled();
  });

  it("that take too long to fetch do not outlast the call's own time-out", async () => {
    const transport = await lean.open({ credentials: async () => new Promise(() => {}) });
    const controller = new AbortController();
    const given = lean.failure(transport, controller.signal);
    controller.abort(new Error("enough"));
    expect((await given).message).toBe("enough");
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });
});

it("refuses an invalid address, whatever else is set", async () => {
  await expect(lean.open({ endpointUrl: "127.0.0.1:8000" })).rejects.toThrow("Invalid endpointUrl");
});

describe("a repository over it", () => {
  it("has its region and address, and corrects its clock by the server's", async () => {
    lean.server.answer = (outgoing) =>
      reply(outgoing, {}, { headers: { date: "Fri, 01 Jan 2100 00:00:00 GMT" } });
    const repository = await openOver(await lean.open());
    expect(repository).toMatchObject({ region: REGION, endpointUrl: lean.server.endpointUrl });
    expect(new Date(repository.clock.now()).getUTCFullYear()).toBe(2100);
    await repository.close();
  });

  it("learns the server's time until it is closed", async () => {
    const listeners = new Set<(date: string | undefined) => void>();
    const transport: ObservedTransport = {
      region: REGION,
      endpointUrl: undefined,
      call: async () => ({}),
      close: () => expect.fail("it belongs to its creator"),
      watchServerDate: (listener) => {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
    };
    const repositories = [await openOver(transport), await openOver(transport)];
    expect(listeners.size).toBe(2);
    for (const repository of repositories) await repository.close();
    expect(listeners.size).toBe(0);
  });
});

async function openOver(transport: DynamoTransport): Promise<DynamoRepository> {
  return DynamoRepository.open("app", { transport, provisioning: "never", create: false });
}

/** Refuses signatures that are older or newer than five minutes, as AWS does. */
function checkTimes(
  serverAheadMs: () => number,
  refusal: { readonly name: string; readonly details?: object },
): void {
  lean.server.answer = (outgoing, { headers }) => {
    const serverMs = lean.clock.now() + serverAheadMs();
    const signed = String(headers["x-amz-date"]).replace(
      /(....)(..)(..)T(..)(..)(..)Z/,
      "$1-$2-$3T$4:$5:$6Z",
    );
    const date = new Date(serverMs).toUTCString();
    if (Math.abs(Date.parse(signed) - serverMs) <= 300_000)
      reply(outgoing, {}, { headers: { date } });
    else refuse(outgoing, refusal.name, { headers: { date }, ...refusal });
  };
}
