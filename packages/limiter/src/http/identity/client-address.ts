import { ValidationError } from "../../core/errors.ts";
import { checkOptions, optionNames } from "../../core/options.ts";
import {
  formatDotted,
  isIpv4,
  isWithin,
  parseAddress,
  parseNetwork,
  takePrefix,
  extractIpv4,
  type Address,
  type Network,
} from "./address.ts";
import { warnOnce } from "../../warnings/warn-once.ts";

/** How the address of a client is found. */
export interface AddressOptions {
  /**
   * How many proxies stand in front of this server, or their addresses and networks. What they add
   * to `X-Forwarded-For` is trusted. @default 0
   */
  readonly trustedProxies?: number | readonly string[];
  /** IPv6 addresses that share this prefix are one client. @default 56 */
  readonly ipv6Prefix?: number;
}

/** Who sent a request, nearest first: the socket's address, then what proxies have added. */
interface Hops {
  /** Undefined where there is no socket, for Unix sockets, and once a socket is closed. */
  readonly peer: Address | undefined;
  /** `X-Forwarded-For`, from its end. */
  readonly forwarded: readonly string[];
}

const NAMES = optionNames<AddressOptions>({ trustedProxies: true, ipv6Prefix: true });
const DEFAULT_PREFIX = 56;

/**
 * Makes an entity id for the address of a client: `ip:203.0.113.7`, or `ip6:20010db8000012.56` for
 * the network of an IPv6 address: its prefix in hex, and the number of bits. An IPv6 address in
 * which a translator has embedded an IPv4 address (`64:ff9b::/96`) counts as the latter.
 *
 * `X-Forwarded-For` can be forged. It is trusted only as far as `trustedProxies` reaches; if it is
 * malformed before that, the last trusted address is the client. Without a socket, as in
 * web-standard handlers, the platform in front must be counted or listed as a proxy. Throws if the
 * client cannot be determined.
 *
 * @example
 * // Behind one load balancer, which adds the address that it got the request from:
 * const entity = (incoming: Request) => clientAddress(incoming, { trustedProxies: 1 });
 */
export function clientAddress(
  request: {
    /** The headers as Node has them, in lower case, or a web-standard `Headers`. */
    readonly headers: object;
    /** The socket of the request, if there is one. */
    readonly socket?:
      | {
          /** The address of the other end. */
          readonly remoteAddress?: string | undefined;
        }
      | undefined;
  },
  options: AddressOptions = {},
): string {
  checkOptions(options, NAMES, "clientAddress");
  const prefix = checkPrefix(options.ipv6Prefix);
  const hops = readHops(request);
  const isTrusted = buildTrust(options.trustedProxies, request.socket !== undefined);
  const believed = findClient(hops, isTrusted);
  if (believed === undefined) throw buildUnknownSenderError(hops);
  // Only here: as a trusted proxy, the prefix of translators is not all of IPv4.
  const client = extractIpv4(believed);
  if (isTrusted === undefined && hops.forwarded.length > 0 && isPrivate(client)) warnOfProxy();
  return isIpv4(client)
    ? `ip:${formatDotted(client)}`
    : `ip6:${takePrefix(client, prefix)}.${prefix}`;
}

/** Whether a hop is one of our proxies: by its place, nearest first from 0, or by its address. */
type Trust = (place: number, address: Address | undefined) => boolean;

/** The first hop that is not trusted, or the last that can be read. */
function findClient({ peer, forwarded }: Hops, isTrusted: Trust | undefined): Address | undefined {
  let believed = peer;
  if (isTrusted === undefined) return believed;
  for (const [place, text] of forwarded.entries()) {
    if (!isTrusted(place, believed)) break;
    const next = parseAddress(text);
    if (next === undefined) break;
    believed = next;
  }
  return believed;
}

function buildTrust(
  proxies: AddressOptions["trustedProxies"] = 0,
  hasSocket: boolean,
): Trust | undefined {
  if (typeof proxies === "number" && Number.isSafeInteger(proxies) && proxies >= 0)
    return proxies === 0 ? undefined : (place) => place < proxies;
  if (!Array.isArray(proxies))
    throw new ValidationError(
      "trustedProxies",
      proxies,
      "must be how many proxies there are, or an array of their addresses and networks",
    );
  const networks = parseNetworks(proxies as readonly string[]);
  if (networks.length === 0) return undefined;
  // A platform without sockets is the first proxy. A socket that the client closed has no address
  // either; then the header must not be trusted.
  return (_place, address) =>
    address === undefined ? !hasSocket : networks.some((network) => isWithin(address, network));
}

/** The networks of each list. The list is the same for every request, and parsing it takes 5 µs. */
const NETWORKS_MEMO = new WeakMap<readonly string[], readonly Network[]>();

function parseNetworks(proxies: readonly string[]): readonly Network[] {
  const known = NETWORKS_MEMO.get(proxies);
  if (known !== undefined) return known;
  const networks = proxies.map((text) => checkNetwork(text));
  NETWORKS_MEMO.set(proxies, networks);
  return networks;
}

function checkNetwork(text: unknown): Network {
  const network = typeof text === "string" ? parseNetwork(text) : undefined;
  if (network === undefined)
    throw new ValidationError(
      "trustedProxies",
      text,
      "must be an address or a network, such as 10.0.0.0/8",
    );
  return network;
}

function checkPrefix(prefix = DEFAULT_PREFIX): number {
  if (!Number.isInteger(prefix) || prefix < 1 || prefix > 128)
    throw new ValidationError("ipv6Prefix", prefix, "must be a whole number from 1 to 128");
  return prefix;
}

function readHops(request: Parameters<typeof clientAddress>[0]): Hops {
  const { headers, socket } = (request ?? {}) as Partial<typeof request>;
  if (typeof headers !== "object" || headers === null)
    throw new ValidationError("request", request, "must have headers");
  const { remoteAddress } = socket ?? {};
  const field = readForwardedFor(headers);
  return {
    peer: typeof remoteAddress === "string" ? parseAddress(remoteAddress) : undefined,
    forwarded:
      field === undefined
        ? []
        : field
            .split(",")
            .map((text) => text.trim())
            .toReversed(),
  };
}

const FIELD = "x-forwarded-for";

function readForwardedFor(headers: object): string | undefined {
  const { get, [FIELD]: field } = headers as {
    readonly get?: unknown;
    readonly [FIELD]?: unknown;
  };
  const value: unknown = typeof get === "function" ? get.call(headers, FIELD) : field;
  if (typeof value === "string") return value;
  return Array.isArray(value) ? value.join(",") : undefined;
}

/** Networks of proxies, in which no client from the internet is. */
const PRIVATE =
  "127.0.0.0/8 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 169.254.0.0/16 100.64.0.0/10 ::1 fc00::/7 fe80::/10"
    .split(" ")
    .map((text) => checkNetwork(text));

function isPrivate(address: Address): boolean {
  return PRIVATE.some((network) => isWithin(address, network));
}

function warnOfProxy(): void {
  warnOnce(
    "WARN_LIMITER_PROXY_NOT_TRUSTED",
    "Requests come from a private address with an X-Forwarded-For header that is not trusted, so all clients behind that proxy share one limit. Pass the number of proxies in front of this server: clientAddress(request, { trustedProxies: 1 }).",
  );
}

function buildUnknownSenderError({ forwarded }: Hops): ValidationError {
  return new ValidationError(
    "request",
    forwarded.length === 0 ? "no socket, no X-Forwarded-For" : "no socket",
    "the client is unknown: pass the socket, or set trustedProxies to the number of proxies in front of this server",
  );
}
