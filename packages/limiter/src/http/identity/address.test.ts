import { BlockList, isIPv4, isIPv6 } from "node:net";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  formatDotted,
  isIpv4,
  isWithin,
  parseAddress,
  parseNetwork,
  takePrefix,
} from "./address.ts";

const NO_ADDRESSES = [
  "",
  " ::1",
  "unknown",
  "_hidden",
  "_SEVKISEK",
  "localhost",
  "example.org:80",
  "1.2.3",
  "1.2.3.4.5",
  "256.1.1.1",
  "01.2.3.4",
  "1.2.3.4:",
  "1.2.3.4:123456",
  "1.2.3.4%eth0",
  "[1.2.3.4]",
  "1:2:3:4:5:6:7:8:9",
  "1::2::3",
  "1:2:3:4:5:6:7:8::",
  ":::",
  ":1",
  "1:",
  "12345::",
  "g::",
  "::1.2.3",
  "1.2.3.4::",
  "::1.2.3.4:5",
  "[::1",
  "::1]",
  "[::1]x",
  "::1%",
  "0x7f.0.0.1",
];

/** All 128 bits in hex. */
function listBits(text: string): string | undefined {
  const address = parseAddress(text);
  return address && takePrefix(address, 128);
}

describe("reading addresses", () => {
  it.each([
    ["203.0.113.7", "00000000000000000000ffffcb007107"],
    ["203.0.113.7:8080", "00000000000000000000ffffcb007107"],
    ["::ffff:203.0.113.7", "00000000000000000000ffffcb007107"],
    ["::FFFF:cb00:7107", "00000000000000000000ffffcb007107"],
    ["[::ffff:203.0.113.7]:443", "00000000000000000000ffffcb007107"],
    ["2001:db8::1", "20010db8000000000000000000000001"],
    ["[2001:db8::1]", "20010db8000000000000000000000001"],
    ["[2001:db8::1]:65535", "20010db8000000000000000000000001"],
    ["fe80::1%eth0", "fe800000000000000000000000000001"],
    ["[fe80::1%eth0.7]:80", "fe800000000000000000000000000001"],
    ["::1", "00000000000000000000000000000001"],
    ["::", "00000000000000000000000000000000"],
    ["1:2:3:4:5:6:7::", "00010002000300040005000600070000"],
    ["::2:3:4:5:6:7:8", "00000002000300040005000600070008"],
  ])("%s", (text, bits) => {
    expect(listBits(text)).toBe(bits);
  });

  it.each(NO_ADDRESSES)("%j is none", (text) => {
    expect(parseAddress(text)).toBeUndefined();
  });

  it("as Node does, and an address is the same however it is written", () => {
    const written = fc.oneof(
      fc.ipV4(),
      fc.ipV6(),
      fc.string({ unit: fc.constantFrom(..."0123456789abcdefF:.::"), maxLength: 20 }),
    );
    fc.assert(
      fc.property(written, (text) => {
        const address = parseAddress(text);
        if (isIPv4(text)) expect(formatDotted(address!)).toBe(text);
        else if (isIPv6(text)) {
          const { hostname } = new URL(`http://[${text}]/`);
          expect(listBits(hostname)).toBe(takePrefix(address!, 128));
          expect(listBits(text.toUpperCase())).toBe(takePrefix(address!, 128));
        } else if (!/^(?:::ffff:)?[\d.]+:\d{1,5}$/.test(text)) expect(address).toBeUndefined();
      }),
      { numRuns: 500 },
    );
  });
});

describe("networks", () => {
  it.each([
    "10.0.0.1:80/8",
    "::ffff:10.0.0.0/8",
    "",
    "10.0.0.0/33",
    "::/129",
    "10.0.0.0/",
    "10.0.0.0/8/8",
    "10.0.0.0/-1",
    "10/8",
    "/8",
  ])("%j is none", (text) => {
    expect(parseNetwork(text)).toBeUndefined();
  });

  it("hold what Node says they hold", () => {
    const near = fc.tuple(fc.integer({ min: 0, max: 255 }), fc.integer({ min: 0, max: 255 }));
    const pair = fc.oneof(
      fc.record({
        net: near.map(([a, b]) => `10.${a}.${b}.128`),
        prefix: fc.integer({ min: 1, max: 32 }),
        address: near.map(([a, b]) => `10.${a}.${b}.130`),
      }),
      fc.record({
        net: near.map(([a, b]) => `2001:db8:${a.toString(16)}::${b.toString(16)}`),
        prefix: fc.integer({ min: 1, max: 128 }),
        address: near.map(([a, b]) => `2001:db8:${a.toString(16)}::${b.toString(16)}`),
      }),
    );
    fc.assert(
      fc.property(pair, ({ net, prefix, address }) => {
        const family = net.includes(":") ? "ipv6" : "ipv4";
        const list = new BlockList();
        list.addSubnet(net, prefix, family);
        const network = parseNetwork(`${net}/${prefix}`)!;
        expect(isWithin(parseAddress(address)!, network)).toBe(list.check(address, family));
      }),
      { numRuns: 500 },
    );
  });

  it("of IPv6 hold no IPv4 address, and those of IPv4 hold it however it arrives", () => {
    const mapped = parseAddress("::ffff:10.1.2.3")!;
    expect(isIpv4(mapped)).toBe(true);
    expect(isWithin(mapped, parseNetwork("::/0")!)).toBe(false);
    expect(isWithin(mapped, parseNetwork("10.0.0.0/8")!)).toBe(true);
    expect(isWithin(mapped, parseNetwork("0.0.0.0/0")!)).toBe(true);
    expect(isWithin(mapped, parseNetwork("::ffff:10.0.0.0/104")!)).toBe(true);
    expect(isWithin(parseAddress("::1")!, parseNetwork("0.0.0.0/0")!)).toBe(false);
  });
});
