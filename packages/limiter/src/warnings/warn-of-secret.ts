import { warnOnce } from "./warn-once.ts";

/** Warns about an entity id that looks like a secret. The warning does not repeat it. */
export function warnOfSecret(entityId: string): void {
  if (looksLikeSecret(entityId))
    warnOnce(
      "WARN_LIMITER_SECRET_AS_ID",
      "The entity of a call looks like an API key or a token. Entity ids are stored, listed " +
        'and logged in plain text. Use hashedId("key", secret) instead.',
    );
}

/**
 * Matches ids that begin like the keys of well-known services, and JSON Web Tokens. Ids made by
 * `hashedId` end in a dash and 32 hexadecimal digits, whatever their prefix.
 */
const SECRET =
  /^(?:(?:sk|pk|rk)[-_][\w-]{16,}$|eyJ[\w-]{8,}\.[\w-]+\.|gh[oprsu]_\w{20,}$|github_pat_|glpat-|xox[a-z]-|A[KS]IA[A-Z0-9]{16}$|AIza[\w-]{30,}$)/;
const HASHED = /-[0-9a-f]{32}$/;

function looksLikeSecret(entityId: unknown): boolean {
  return typeof entityId === "string" && SECRET.test(entityId) && !HASHED.test(entityId);
}
