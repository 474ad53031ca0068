import type { HeaderFields } from "./options.ts";
import { formatPolicy, secondsUntilMore, type ShownLimit } from "./shown-limit.ts";
import { integer, text } from "./structured-fields.ts";

/**
 * The fields of draft-ietf-httpapi-ratelimit-headers-11: every limit, by name.
 *
 *   RateLimit-Policy: "rpm";q=100;w=60, "tpm";q=10000;w=60;zae-burst=15000
 *   RateLimit: "rpm";r=59;t=1, "tpm";r=0;t=12
 */
export function ietf11(shown: readonly ShownLimit[]): HeaderFields {
  let policies = "";
  let balances = "";
  for (const limit of shown) {
    const comma = policies === "" ? "" : ", ";
    const name = text(limit.name);
    policies += `${comma}${name};q=${formatPolicy(limit)}`;
    const seconds = secondsUntilMore(limit);
    const time = seconds === undefined ? "" : `;t=${integer(seconds)}`;
    balances += `${comma}${name};r=${integer(limit.available)}${time}`;
  }
  return { "RateLimit-Policy": policies, RateLimit: balances };
}
