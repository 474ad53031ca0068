import { draft6 } from "./draft-6.ts";
import type { HeaderFields } from "./options.ts";
import type { ShownLimit } from "./shown-limit.ts";

/**
 * The fields of draft-ietf-httpapi-ratelimit-headers-07: what draft 6 says, in one field.
 *
 *   RateLimit-Policy: 100;w=60
 *   RateLimit: limit=100, remaining=59, reset=1
 */
export function draft7(shown: readonly ShownLimit[]): HeaderFields {
  const fields = draft6(shown);
  return {
    "RateLimit-Policy": fields["RateLimit-Policy"],
    RateLimit: `limit=${fields["RateLimit-Limit"]}, remaining=${fields["RateLimit-Remaining"]}, reset=${fields["RateLimit-Reset"]}`,
  };
}
