/** How the address of a client is found. */
export interface AddressOptions {
  /**
   * How many proxies stand in front of this server, or the addresses and networks of those that
   * do; what they put into `X-Forwarded-For` is believed. @default 0
   */
  readonly trustedProxies?: number | readonly string[];
  /** Addresses of IPv6 that share this prefix are one client. @default 56 */
  readonly ipv6Prefix?: number;
}

/** The frame's placeholder: branch `headers` replaces it. */
export function clientAddress(
  _request: {
    readonly headers: object;
    readonly socket?: { readonly remoteAddress?: string | undefined } | undefined;
  },
  _options: AddressOptions = {},
): string {
  return "ip:127.0.0.1";
}
