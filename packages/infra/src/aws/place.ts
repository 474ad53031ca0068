import { ValidationError } from "zae-limiter";

/** Which stack, and how AWS is reached. */
export interface StackPlace {
  /** The name of the stack. @default `ZAEL_STACK`, or "zae-limiter" */
  readonly stack?: string;
  /** Its region. @default `AWS_REGION`, `AWS_DEFAULT_REGION`, or that of the SDK's shared files */
  readonly region?: string;
  /** An address other than AWS's, for every service. */
  readonly endpointUrl?: string;
  /** The id of the expected account; any other account is refused. */
  readonly account?: string;
  /** Stops waiting. AWS finishes what it has started. */
  readonly signal?: AbortSignal;
}

/** A place whose names are valid, with everything filled in that needs no request. */
export interface CheckedPlace {
  readonly stack: string;
  readonly region: string | undefined;
  readonly endpointUrl: string | undefined;
  readonly account: string | undefined;
  readonly signal: AbortSignal | undefined;
}

/** The variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT_STACK = "zae-limiter";
/**
 * The length that the suffixes of all names in a stack leave for its own name, as in the library.
 */
const MAX_STACK_LENGTH = 55;
/** Engines on this machine ignore the region, but requests are signed for one. */
const LOCAL_REGION = "us-east-1";

/** Fills in what a place leaves open. Throws `ValidationError` for a part of it that is invalid. */
export function resolvePlace(
  place: StackPlace,
  environment: Environment = process.env,
): CheckedPlace {
  const { endpointUrl, account, signal } = place;
  const stack = place.stack ?? (environment["ZAEL_STACK"] || DEFAULT_STACK);
  if (!/^[A-Za-z][A-Za-z0-9-]*$/.test(stack))
    throw new ValidationError(
      "stack",
      stack,
      "must begin with a letter and contain only letters, digits and -",
    );
  if (stack.length > MAX_STACK_LENGTH)
    throw new ValidationError(
      "stack",
      stack,
      `must not be longer than ${MAX_STACK_LENGTH} characters`,
    );
  if (endpointUrl !== undefined && !(/^https?:\/\//.test(endpointUrl) && URL.canParse(endpointUrl)))
    throw new ValidationError(
      "endpointUrl",
      endpointUrl,
      "must be an address such as http://127.0.0.1:8000",
    );
  if (account !== undefined && !/^\d{12}$/.test(account))
    throw new ValidationError("account", account, "must be the 12 digits of an account's id");
  return { stack, region: findRegion(place, environment), endpointUrl, account, signal };
}

function findRegion(
  { region, endpointUrl }: StackPlace,
  environment: Environment,
): string | undefined {
  const found =
    region ??
    (environment["AWS_REGION"] ||
      environment["AWS_DEFAULT_REGION"] ||
      (isLocal(endpointUrl) ? LOCAL_REGION : undefined));
  // It becomes part of the address that signed requests are sent to.
  if (found !== undefined && !/^[a-z0-9-]{1,63}$/.test(found))
    throw new ValidationError(
      "region",
      found,
      "must contain only small letters, digits and -, such as eu-west-1",
    );
  return found;
}

/** Whether an address is on this machine. */
export function isLocal(endpointUrl: string | undefined): boolean {
  return (
    endpointUrl !== undefined &&
    ["127.0.0.1", "localhost", "[::1]"].includes(new URL(endpointUrl).hostname)
  );
}
