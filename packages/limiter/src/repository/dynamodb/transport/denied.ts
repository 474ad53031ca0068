import { PermissionDenied } from "../../../core/errors.ts";

const ADVICE =
  "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, choose a profile with AWS_PROFILE, " +
  "give the machine a role, or pass credentials";

/**
 * The error when there is nothing to sign with. `why` is the reason of the provider that looked for
 * credentials; `further` is what else the reader should know.
 */
export function buildMissingCredentialsError(
  why: string,
  { further = "", ...options }: ErrorOptions & { readonly further?: string } = {},
): PermissionDenied {
  // The reason may end with a full stop, but becomes a part of our sentence.
  const said = why.replace(/\.$/, "");
  return buildCredentialsError(
    `No AWS credentials were found (${said}): ${ADVICE}${further}.`,
    options,
  );
}

/** The error when AWS does not accept what a call was signed with. `why` is what it said. */
export function buildRefusedCredentialsError(
  why: string,
  options?: ErrorOptions,
): PermissionDenied {
  return buildCredentialsError(
    `AWS does not accept the credentials, which are wrong or have expired (${why}): ` +
      "renew them, or choose others with AWS_PROFILE, or with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
    options,
  );
}

const POLICY_ADVICE =
  "attach the policy that fits the program to its role " +
  "(acquire-only, read-only or full-access, or that of its namespace)";

/** The error when the credentials are valid, and their policies do not allow a call. */
export function buildDeniedCallError(
  operation: string,
  { resource, why, cause }: Denial,
): PermissionDenied {
  // What AWS names is exact: it denies a transaction for one of its members.
  const action = /is not authorized to perform: ([\w-]+:\w+)/.exec(why)?.[1] ?? operation;
  return new PermissionDenied(`AWS denied ${action} on ${resource}: ${POLICY_ADVICE} (${why}).`, {
    cause,
  });
}

/** What was denied, and what AWS said about it. */
export interface Denial {
  readonly resource: string;
  readonly why: string;
  readonly cause: unknown;
}

/**
 * A `PermissionDenied` too, so that it does not count as an outage: a call must not be let through
 * because a machine was configured without credentials.
 */
function buildCredentialsError(message: string, options?: ErrorOptions): PermissionDenied {
  return new PermissionDenied(message, options, "ERR_LIMITER_NO_CREDENTIALS");
}
