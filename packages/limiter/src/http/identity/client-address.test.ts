import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ValidationError } from "../../core/errors.ts";
import { entityId } from "../../core/identifiers.ts";
import { clientAddress, type AddressOptions } from "./client-address.ts";
import { forgetWarnings } from "../../warnings/warn-once.ts";

const CLIENT = "203.0.113.7";

/** A request as Node has it. */
function incoming(remoteAddress: string | undefined, forwarded?: string | readonly string[]) {
  return {
    headers: { ...(forwarded !== undefined && { "x-forwarded-for": forwarded }) },
    socket: { remoteAddress },
  };
}

const warned = vi.spyOn(process, "emitWarning");

beforeEach(() => {
  forgetWarnings();
  warned.mockReset().mockReturnValue();
});
afterEach(() => forgetWarnings());

describe("the id of an address", () => {
  it.each<[string, AddressOptions, string]>([
    [CLIENT, {}, "ip:203.0.113.7"],
    [`::ffff:${CLIENT}`, {}, "ip:203.0.113.7"],
    [`64:ff9b::${CLIENT}`, {}, "ip:203.0.113.7"],
    ["64:ff9b::cb00:7107", { ipv6Prefix: 128 }, "ip:203.0.113.7"],
    // Other prefixes embed no address, or embed it elsewhere.
    ["64:ff9b:1::cb00:7107", {}, "ip6:0064ff9b000100.56"],
    ["64:ff9b::1:cb00:7107", {}, "ip6:0064ff9b000000.56"],
    ["2001:db8:0:12ff::1", {}, "ip6:20010db8000012.56"],
    ["2001:db8:0:12ff::1", { ipv6Prefix: 128 }, "ip6:20010db8000012ff0000000000000001.128"],
    ["2001:db8:0:12ff::1", { ipv6Prefix: 64 }, "ip6:20010db8000012ff.64"],
    ["2001:db8:0:12ff::1", { ipv6Prefix: 57 }, "ip6:20010db80000128.57"],
    ["2001:db8:0:127f::1", { ipv6Prefix: 57 }, "ip6:20010db80000120.57"],
    ["ffff::1", { ipv6Prefix: 1 }, "ip6:8.1"],
    ["::1", {}, "ip6:00000000000000.56"],
    ["fe80::1%eth0", {}, "ip6:fe800000000000.56"],
  ])("%s with %j is %s", (address, options, id) => {
    expect(clientAddress(incoming(address), options)).toBe(id);
  });

  it("is valid, and the same for two addresses exactly if they share the prefix", () => {
    const group = fc.constantFrom("0", "1", "7fff", "8000", "ffff", "12ff");
    const address = fc.array(group, { minLength: 8, maxLength: 8 }).map((all) => all.join(":"));
    fc.assert(
      fc.property(
        address,
        address,
        fc.integer({ min: 1, max: 128 }),
        fc.integer({ min: 1, max: 128 }),
        (left, right, prefix, other) => {
          const [id, another] = [left, right].map((each) =>
            clientAddress(incoming(each), { ipv6Prefix: prefix }),
          );
          // Some are IPv4 addresses.
          if (!id!.startsWith("ip6:") || !another!.startsWith("ip6:")) return;
          expect(entityId(id)).toBe(id);
          const share = left.split(":").map(binary).join("").slice(0, prefix);
          expect(another === id).toBe(right.split(":").map(binary).join("").startsWith(share));
          if (other !== prefix)
            expect(clientAddress(incoming(left), { ipv6Prefix: other })).not.toBe(id);
        },
      ),
    );
  });
});

function binary(group: string): string {
  return Number.parseInt(group, 16).toString(2).padStart(16, "0");
}

describe("behind proxies", () => {
  it.each<[string, string | readonly string[], number | readonly string[], string]>([
    // A number of proxies: the address that the outermost of them saw.
    ["10.0.0.1", CLIENT, 1, CLIENT],
    ["10.0.0.1", `6.6.6.6, ${CLIENT}`, 1, CLIENT],
    ["10.0.0.1", `6.6.6.6, ${CLIENT}, 10.0.0.2`, 2, CLIENT],
    ["10.0.0.1", ["6.6.6.6", `${CLIENT} , 10.0.0.2`], 2, CLIENT],
    ["10.0.0.1", `${CLIENT}:51034`, 1, CLIENT],
    ["10.0.0.1", `[::ffff:${CLIENT}]:51034`, 1, CLIENT],
    ["10.0.0.1", CLIENT, 0, "10.0.0.1"],
    // Fewer addresses than proxies: the farthest one.
    ["10.0.0.1", CLIENT, 3, CLIENT],
    // What cannot be parsed is not trusted: the proxy that wrote it counts as the client.
    ["10.0.0.1", "unknown", 1, "10.0.0.1"],
    ["10.0.0.1", `${CLIENT}, _hidden, 10.0.0.2`, 3, "10.0.0.2"],
    ["10.0.0.1", `${CLIENT},`, 1, "10.0.0.1"],
    ["10.0.0.1", "", 1, "10.0.0.1"],
    // A list: the first address from the end that is not a proxy's.
    ["10.0.0.1", `6.6.6.6, ${CLIENT}, 10.9.9.9`, ["10.0.0.0/8"], CLIENT],
    ["::ffff:10.0.0.1", CLIENT, ["10.0.0.1"], CLIENT],
    ["2001:db8::5", CLIENT, ["10.0.0.1", "2001:db8::/32"], CLIENT],
    ["9.9.9.9", "6.6.6.6", ["10.0.0.0/8"], "9.9.9.9"],
    ["10.0.0.1", "10.0.0.3, 10.0.0.2", ["10.0.0.0/8"], "10.0.0.3"],
    ["10.0.0.1", "10.0.0.3, garbage, 10.0.0.2", ["10.0.0.0/8"], "10.0.0.2"],
    ["10.0.0.1", CLIENT, [], "10.0.0.1"],
    // The addresses of a translator: a proxy by their own network, and only by that.
    ["64:ff9b::a00:1", CLIENT, ["64:ff9b::/96"], CLIENT],
    ["9.9.9.9", CLIENT, ["64:ff9b::/96"], "9.9.9.9"],
    ["64:ff9b::a00:1", CLIENT, ["10.0.0.0/8"], "10.0.0.1"],
  ])("%s with X-Forwarded-For %j and %j is %s", (peer, forwarded, trustedProxies, client) => {
    expect(clientAddress(incoming(peer, forwarded), { trustedProxies })).toBe(`ip:${client}`);
  });

  it("reads the headers of web-standard requests, where the platform is the first proxy", () => {
    const request = new Request("http://localhost/", {
      headers: { "X-Forwarded-For": `6.6.6.6, ${CLIENT}` },
    });
    expect(clientAddress(request, { trustedProxies: 1 })).toBe(`ip:${CLIENT}`);
    expect(clientAddress(request, { trustedProxies: ["10.0.0.0/8"] })).toBe(`ip:${CLIENT}`);
  });

  it("counts a Unix socket as the first proxy", () => {
    expect(clientAddress(incoming(undefined, CLIENT), { trustedProxies: 1 })).toBe(`ip:${CLIENT}`);
  });

  it("does not trust a forged header", () => {
    const proxy = fc.integer({ min: 1, max: 254 }).map((last) => `10.0.0.${last}`);
    const junk = fc.oneof(
      fc.ipV4(),
      fc.ipV6(),
      fc.string({ unit: fc.constantFrom(..."0123456789.,:[]% \"'a_\t"), maxLength: 40 }),
      fc.constantFrom("unknown", "10.0.0.1", ",", ",,,", "[", "127.0.0.1, 10.0.0.9"),
    );
    const client = fc.oneof(fc.ipV6(), fc.ipV4()).filter((text) => !text.startsWith("10."));
    fc.assert(
      fc.property(
        client,
        fc.array(proxy, { minLength: 1, maxLength: 3 }),
        fc.array(junk, { maxLength: 4 }),
        fc.boolean(),
        (sender, proxies, forged, inLines) => {
          // Each proxy adds the address that it got the request from; the last one is the socket's.
          const [peer, ...inner] = proxies.toReversed();
          const added = [sender, ...inner.toReversed()].join(", ");
          const lines = [...forged, added];
          const request = incoming(peer, inLines ? lines : lines.join(", "));
          const id = clientAddress(incoming(sender));
          expect(clientAddress(request, { trustedProxies: proxies.length })).toBe(id);
          expect(clientAddress(request, { trustedProxies: ["10.0.0.0/24"] })).toBe(id);
          // If no proxy is trusted, the header has no effect.
          expect(clientAddress(incoming(sender, lines))).toBe(id);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe("a proxy that is not trusted", () => {
  it.each(["10.0.0.1", "127.0.0.1", "::1", "::ffff:192.168.1.1", "172.31.0.1", "fd00::1"])(
    "at %s is warned of, once",
    (peer) => {
      for (let request = 0; request < 3; request += 1) clientAddress(incoming(peer, CLIENT));
      expect(warned.mock.calls).toEqual([
        [
          expect.stringContaining("{ trustedProxies: 1 }"),
          { code: "WARN_LIMITER_PROXY_NOT_TRUSTED" },
        ],
      ]);
    },
  );

  it("is not assumed for a header from the internet, or without a header", () => {
    clientAddress(incoming("9.9.9.9", CLIENT));
    clientAddress(incoming("172.32.0.1", CLIENT));
    clientAddress(incoming("10.0.0.1"));
    clientAddress(incoming("10.0.0.1", CLIENT), { trustedProxies: 1 });
    clientAddress(incoming("10.0.0.1", CLIENT), { trustedProxies: ["10.0.0.1"] });
    expect(warned).not.toHaveBeenCalled();
  });
});

describe("the client is unknown", () => {
  it.each<[object, AddressOptions]>([
    [{ headers: {} }, {}],
    [{ headers: new Headers({ "x-forwarded-for": CLIENT }) }, {}],
    [{ headers: new Headers() }, { trustedProxies: 1 }],
    [{ headers: new Headers({ "x-forwarded-for": "unknown" }) }, { trustedProxies: 1 }],
    [{ headers: {}, socket: {} }, {}],
    // A client that has hung up could have written the header itself.
    [incoming(undefined, CLIENT), { trustedProxies: ["10.0.0.0/8"] }],
    [{ headers: {}, socket: { remoteAddress: "/run/app.sock" } }, {}],
  ])("%j with %j", (request, options) => {
    const call = () => clientAddress(request as never, options);
    expect(call).toThrow(ValidationError);
    expect(call).toThrow("the client is unknown: pass the socket, or set trustedProxies");
  });
});

describe("wrong input", () => {
  it.each([
    [{ trustedProxies: -1 }, "trustedProxies"],
    [{ trustedProxies: 1.5 }, "trustedProxies"],
    [{ trustedProxies: Number.NaN }, "trustedProxies"],
    [{ trustedProxies: true }, "trustedProxies"],
    [{ trustedProxies: "10.0.0.1" }, "trustedProxies"],
    [{ trustedProxies: ["10.0.0.1", "loopback"] }, "trustedProxies"],
    [{ trustedProxies: [7] }, "trustedProxies"],
    [{ ipv6Prefix: 0 }, "ipv6Prefix"],
    [{ ipv6Prefix: 129 }, "ipv6Prefix"],
    [{ ipv6Prefix: "56" }, "ipv6Prefix"],
    [{ trustProxy: 1 }, "trustProxy"],
    [7, "options"],
  ])("%j is refused", (options, field) => {
    const call = () => clientAddress(incoming(CLIENT), options as never);
    expect(call).toThrow(expect.objectContaining({ code: "ERR_LIMITER_VALIDATION", field }));
  });

  it.each([undefined, null, {}, { headers: "x-forwarded-for" }])(
    "a request of %j is refused",
    (request) => {
      expect(() => clientAddress(request as never)).toThrow("Invalid request: must have headers");
    },
  );
});
