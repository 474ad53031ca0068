/*
 * Addresses of IPv4 and IPv6 as eight groups of 16 bits. An IPv4 address is kept as IPv6 writes it,
 * ::ffff:a.b.c.d, so it is the same whether it arrives over IPv4 or IPv6.
 */

/** Eight groups of 16 bits. */
export type Address = readonly number[];

/** The addresses that begin with the same bits. */
export interface Network {
  readonly address: Address;
  /** How many bits, of 128. */
  readonly prefix: number;
}

/** The bits in front of an IPv4 address. */
const IPV4_OFFSET = 96;

/** With a port or without, and as sockets that serve IPv4 and IPv6 write it. */
const IPV4 =
  /^(?:::ffff:)?(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})(?::\d{1,5})?$/;
const BRACKETED = /^\[([^\]]*)\](?::\d{1,5})?$/;
const GROUP = /^[0-9a-f]{1,4}$/i;
const ZONE = /%[\w.-]+$/;

/**
 * Reads an address as sockets and proxies write it: with or without a port, brackets and a zone.
 * Undefined for anything else, such as `unknown` or `_hidden`.
 */
export function parseAddress(text: string): Address | undefined {
  const parts = IPV4.exec(text);
  if (parts !== null) return ipv4(parts);
  const written = BRACKETED.exec(text)?.[1] ?? text;
  return written.includes(":") ? parseIpv6(written.replace(ZONE, "")) : undefined;
}

/** Reads `10.0.0.0/8`, `2001:db8::/32` or one address; undefined for anything else. */
export function parseNetwork(text: string): Network | undefined {
  const [start = "", bits, ...rest] = text.split("/");
  const address = parseAddress(start);
  if (address === undefined || rest.length > 0) return undefined;
  if (bits === undefined) return { address, prefix: 128 };
  const prefix = Number(bits) + (start.includes(":") ? 0 : IPV4_OFFSET);
  // 10.0.0.1:80/8 and ::ffff:10.0.0.0/8 cannot mean a network larger than all of IPv4.
  const least = isIpv4(address) ? IPV4_OFFSET : 0;
  const isValid = /^\d{1,3}$/.test(bits) && prefix >= least && prefix <= 128;
  return isValid ? { address, prefix } : undefined;
}

/** Whether an address lies in a network. An IPv6 network holds no IPv4 addresses. */
export function isWithin(address: Address, network: Network): boolean {
  if (isIpv4(address) && network.prefix < IPV4_OFFSET) return false;
  const { address: start, prefix } = network;
  for (let index = 0; index * 16 < prefix; index += 1) {
    const bits = Math.min(16, prefix - index * 16);
    if ((address[index]! ^ start[index]!) >> (16 - bits) !== 0) return false;
  }
  return true;
}

/** Whether it is an IPv4 address. */
export function isIpv4(address: Address): boolean {
  return address[5] === 0xff_ff && address.every((group, index) => index >= 5 || group === 0);
}

/** The well-known prefix of translators between IPv4 and IPv6 (RFC 6052). */
const NAT64: Network = { address: [0x64, 0xff_9b, 0, 0, 0, 0, 0, 0], prefix: IPV4_OFFSET };

/** The IPv4 address that a translator has embedded, or else the address itself. */
export function extractIpv4(address: Address): Address {
  return isWithin(address, NAT64) ? [0, 0, 0, 0, 0, 0xff_ff, ...address.slice(6)] : address;
}

/** An IPv4 address as people write it. */
export function formatDotted(address: Address): string {
  return address
    .slice(6)
    .flatMap((group) => [group >> 8, group & 0xff])
    .join(".");
}

/** The first bits of an address in hex digits; the bits of the last digit beyond them are 0. */
export function takePrefix(address: Address, prefix: number): string {
  const digits = address.map((group) => group.toString(16).padStart(4, "0")).join("");
  const whole = digits.slice(0, Math.floor(prefix / 4));
  const rest = prefix % 4;
  if (rest === 0) return whole;
  const last = Number.parseInt(digits[whole.length]!, 16);
  return whole + ((last >> (4 - rest)) << (4 - rest)).toString(16);
}

function ipv4(parts: RegExpExecArray): Address | undefined {
  const bytes = parts.slice(1, 5).map(Number);
  if (bytes.some((byte) => byte > 255)) return undefined;
  const [first, second, third, fourth] = bytes as [number, number, number, number];
  return [0, 0, 0, 0, 0, 0xff_ff, first * 256 + second, third * 256 + fourth];
}

function parseIpv6(text: string): Address | undefined {
  const [front = "", back, ...more] = withoutDots(text).split("::");
  const before = parseGroups(front);
  if (back === undefined) return before?.length === 8 ? before : undefined;
  const after = parseGroups(back);
  if (before === undefined || after === undefined || more.length > 0) return undefined;
  const missing = 8 - before.length - after.length;
  return missing < 1 ? undefined : [...before, ...Array<number>(missing).fill(0), ...after];
}

/** Writes an IPv4 address at the end of an IPv6 address as two groups. */
function withoutDots(text: string): string {
  const start = text.lastIndexOf(":") + 1;
  const parts = IPV4.exec(text.slice(start));
  const groups = parts === null ? undefined : ipv4(parts)?.slice(6);
  if (groups === undefined) return text;
  return text.slice(0, start) + groups.map((group) => group.toString(16)).join(":");
}

function parseGroups(side: string): number[] | undefined {
  const parts = side === "" ? [] : side.split(":");
  return parts.every((part) => GROUP.test(part))
    ? parts.map((part) => Number.parseInt(part, 16))
    : undefined;
}
