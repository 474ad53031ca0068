import { runSimulation } from "@cloud-copilot/iam-simulate";
import type { PolicyDocument } from "../../../src/policies/policy-document.ts";
import type { IamCall } from "./iam-calls.ts";

const ACCOUNT = "111122223333";

/** The table that policies in tests are for. */
export const TABLE_ARN = `arn:aws:dynamodb:eu-west-1:${ACCOUNT}:table/limits`;

/** What a principal has: its policies, and its tags. */
export interface Principal {
  readonly policies: readonly PolicyDocument[];
  readonly tags?: Readonly<Record<string, string>>;
}

/** Decides as IAM does, by a simulator of it. Equal questions are answered once. */
export class PolicyJudge {
  readonly #principal: Principal;
  readonly #answers = new Map<string, Promise<boolean>>();

  constructor(principal: Principal) {
    this.#principal = principal;
  }

  /** Whether the principal may make the call. */
  allows(call: IamCall): Promise<boolean> {
    const key = JSON.stringify(call);
    const known = this.#answers.get(key) ?? this.#decided(call);
    this.#answers.set(key, known);
    return known;
  }

  /** The calls that the principal may not make. */
  async denied(calls: Iterable<IamCall>): Promise<readonly IamCall[]> {
    return this.#those(calls, false);
  }

  /** The calls that the principal may make. */
  async allowed(calls: Iterable<IamCall>): Promise<readonly IamCall[]> {
    return this.#those(calls, true);
  }

  async #those(calls: Iterable<IamCall>, wanted: boolean): Promise<readonly IamCall[]> {
    const found: IamCall[] = [];
    for (const call of calls) if ((await this.allows(call)) === wanted) found.push(call);
    return found;
  }

  async #decided({ action, path, leadingKeys }: IamCall): Promise<boolean> {
    const { policies, tags = {} } = this.#principal;
    const result = await runSimulation(
      {
        request: {
          principal: `arn:aws:iam::${ACCOUNT}:role/program`,
          action,
          resource: {
            resource: UNADDRESSED.has(action) ? "*" : [TABLE_ARN, path].filter(Boolean).join("/"),
            accountId: ACCOUNT,
          },
          contextVariables: {
            ...(leadingKeys.length > 0 && { "dynamodb:LeadingKeys": [...leadingKeys] }),
            ...Object.fromEntries(
              Object.entries(tags).map(([name, value]) => [`aws:PrincipalTag/${name}`, value]),
            ),
          },
        },
        identityPolicies: policies.map((policy, index) => ({ name: `policy-${index}`, policy })),
        serviceControlPolicies: [],
        resourceControlPolicies: [],
      },
      {},
    );
    if (result.resultType === "error") throw new Error(JSON.stringify(result.errors));
    const ignored = "result" in result ? (result.result.ignoredContextKeys ?? []) : [];
    // A simulator that overlooks a key would call a condition on it met.
    if (ignored.includes("dynamodb:LeadingKeys") && leadingKeys.length > 0)
      throw new Error(`${action} has no leading keys`);
    return result.overallResult === "Allowed";
  }
}

/** Actions on no resource in particular. */
const UNADDRESSED: ReadonlySet<string> = new Set(["dynamodb:ListTables", "dynamodb:ListStreams"]);
