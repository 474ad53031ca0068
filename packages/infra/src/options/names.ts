import { ValidationError } from "zae-limiter";
import { functionSuffix } from "../template/functions.ts";
import { POLICY_SUFFIXES, ROLE_SUFFIXES, type ParameterName } from "../template/parameters.ts";

/** What the names of one kind of thing in IAM are made of. */
interface NameKind {
  readonly word: string;
  /** The longest name that IAM accepts. */
  readonly longest: number;
  /** The parameters that take a name, and the last part of the name that each has by default. */
  readonly suffixes: Readonly<Partial<Record<ParameterName, string>>>;
}

/** The names of roles. */
export const ROLE_NAMES: NameKind = {
  word: "role",
  longest: 64,
  suffixes: {
    AggregatorRoleName: ROLE_SUFFIXES.Aggregator,
    AppRoleName: ROLE_SUFFIXES.App,
    AdminRoleName: ROLE_SUFFIXES.Admin,
    ReadOnlyRoleName: ROLE_SUFFIXES.ReadOnly,
    ProvisionerRoleName: ROLE_SUFFIXES.Provisioner,
  },
};

/** The names of managed policies. */
export const POLICY_NAMES: NameKind = {
  word: "policy",
  longest: 128,
  suffixes: {
    AcquireOnlyPolicyName: POLICY_SUFFIXES.AcquireOnly,
    FullAccessPolicyName: POLICY_SUFFIXES.FullAccess,
    ReadOnlyPolicyName: POLICY_SUFFIXES.ReadOnly,
    NamespaceAcquirePolicyName: POLICY_SUFFIXES.NamespaceAcquire,
    NamespaceFullAccessPolicyName: POLICY_SUFFIXES.NamespaceFullAccess,
    NamespaceReadOnlyPolicyName: POLICY_SUFFIXES.NamespaceReadOnly,
  },
};

/** The longest name of a function that Lambda accepts. */
const LONGEST_FUNCTION = 64;

/** The longest name of a stack with a provisioner. */
export const LONGEST_WITH_PROVISIONER = LONGEST_FUNCTION - functionSuffix("Provisioner").length;

/** The parameters with the names that a format makes; an empty format gives the default names. */
export function namesBy(
  format: unknown,
  option: string,
  { stack, kind }: { readonly stack: string; readonly kind: NameKind },
): Readonly<Record<string, string>> {
  const entries = Object.entries(kind.suffixes);
  if (format === "") return Object.fromEntries(entries.map(([parameter]) => [parameter, ""]));
  if (typeof format !== "string" || format.split("{}").length !== 2)
    throw new ValidationError(option, format, "must contain {} once, such as 'team-{}'");
  return Object.fromEntries(
    entries.map(([parameter, suffix]) => [
      parameter,
      checkName(
        format.replace("{}", () => `${stack}-${suffix}`),
        option,
        kind,
      ),
    ]),
  );
}

/** IAM's characters. */
const NAME = /^[\w+=,.@-]+$/;

function checkName(name: string, option: string, { word, longest }: NameKind): string {
  if (name.length > longest)
    throw new ValidationError(
      option,
      name,
      `makes a ${word} name of ${name.length} characters, but IAM allows ${longest}; shorten it`,
    );
  if (!NAME.test(name))
    throw new ValidationError(
      option,
      name,
      `makes a ${word} name that IAM refuses; use letters, digits and +=,.@_- beside {}`,
    );
  return name;
}
