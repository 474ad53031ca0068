import { describe, expect, it } from "vitest";
import type { LimitsPlan, PlanEntry, ValueChange } from "zae-limiter/manifest";
import { coloursFor, PLAIN } from "./colours.ts";
import { diffText, planModel, planText, problemsText } from "./plan.ts";

function value(name: string, before?: string, after?: string, drift = false): ValueChange {
  return { name, before, after, drift };
}

function entry(
  action: PlanEntry["action"],
  place: Pick<PlanEntry, "level" | "entityId" | "resource">,
  ...values: readonly ValueChange[]
): PlanEntry {
  return { action, ...place, values, managed: true, drift: values.some(({ drift }) => drift) };
}

const ENTRIES: readonly PlanEntry[] = [
  entry("create", { level: "record", entityId: "acme" }, value("name", undefined, "")),
  entry(
    "update",
    { level: "system" },
    value("rpm", "100/min", "200/min", true),
    value("on_unavailable", "allow", "block"),
    value("tpm", undefined, "5/min"),
    value("rph", "6/hour"),
  ),
  entry("unchanged", { level: "resource", resource: "gpt-4" }),
  entry(
    "create",
    { level: "entity", entityId: "acme", resource: "_default_" },
    value("rpm", undefined, "1/min"),
  ),
  entry(
    "delete",
    { level: "entity", entityId: "k\u001B[2J", resource: "gpt-4" },
    value("rpm", "1/min"),
  ),
];

function buildPlanned(more: Partial<LimitsPlan> = {}, isRegistered = true) {
  const plan = {
    namespace: "team-a",
    revision: 3,
    entries: ENTRIES,
    pending: undefined,
    owner: undefined,
    ...more,
  };
  return { plan, isRegistered };
}

const PENDING = {
  hash: "abc",
  startedAt: new Date("2026-11-15T06:30:00Z"),
  principal: "ci",
  declared: { resources: {}, entities: {} },
};

describe("a plan", () => {
  it("is shown level by level, with old and new values and without what stays", () => {
    expect(planText(buildPlanned(), PLAIN)).toBe(`+ create entity acme
    + name  ""
~ update system
    ~ rpm             100/min → 200/min
    ~ on_unavailable  allow → block
    + tpm             5/min
    - rph             6/hour
+ create entity acme for all resources
    + rpm  1/min
- delete entity k\\u001b[2J for gpt-4
    - rpm  1/min

Plan for team-a: 2 to create, 1 to update, 1 to delete, 1 unchanged.
`);
  });

  it("mentions an apply that has not ended, and a namespace that is not registered", () => {
    for (const text of [planText, diffText])
      expect(text(buildPlanned({ pending: PENDING }, false), PLAIN)).toMatch(
        /^Namespace team-a is not registered; limits apply will register it\.\nAn apply that began at 2026-11-15 06:30:00Z by ci has not ended: .*\n\n/,
      );
  });

  it("mentions that CloudFormation applied the limits, because an apply takes them over", () => {
    const owner = "limits/team-a/limits-provisioner/0123abcd";
    for (const text of [planText, diffText])
      expect(text(buildPlanned({ owner }), PLAIN)).toMatch(
        /^CloudFormation applied the limits of team-a \(limits\/team-a\/.*takes them over\.\n\n/,
      );
  });

  it("is cut where only a part is wanted, and shows first what goes", () => {
    expect(planText(buildPlanned(), PLAIN, 1)).toBe(`- delete entity k\\u001b[2J for gpt-4
    - rpm  1/min
… and 3 more; limits plan shows all of them.

Plan for team-a: 2 to create, 1 to update, 1 to delete, 1 unchanged.
`);
  });

  it("is coloured on a terminal", () => {
    const colours = coloursFor({ write: () => undefined, isTTY: true }, {});
    const text = planText(buildPlanned(), colours);
    expect(text).toContain("\u001B[32m+ create\u001B[0m entity acme\n");
    expect(text).toContain("\u001B[31m-\u001B[0m rph ");
    expect(text).not.toContain("\u001B[2J");
  });

  it("is a model for programs, with counts and without what an apply declares", () => {
    expect(planModel(buildPlanned({ pending: PENDING }))).toEqual({
      namespace: "team-a",
      revision: 3,
      registered: true,
      pending: { hash: "abc", startedAt: PENDING.startedAt, principal: "ci" },
      entries: ENTRIES,
      counts: { create: 2, update: 1, delete: 1, unchanged: 1, drift: 1, adopt: 0 },
    });
    expect(planModel(buildPlanned())).not.toHaveProperty("pending");
  });
});

it("a diff is shown value by value, and drift is marked", () => {
  expect(diffText(buildPlanned(), PLAIN)).toBe(
    `Where                          Value           Stored   Declared
entity acme                    name                     ""
system                         rpm             100/min  200/min   drift
system                         on_unavailable  allow    block
system                         tpm                      5/min
system                         rph             6/hour
entity acme for all resources  rpm                      1/min
entity k\\u001b[2J for gpt-4    rpm             1/min

drift: changed by hand since the last apply.
Plan for team-a: 2 to create, 1 to update, 1 to delete, 1 unchanged.
`,
  );
});

it("problems are lines that begin with their place, as far as it is known", () => {
  const problem = { path: "a", message: "Wrong.", suggestion: undefined };
  expect(
    problemsText([
      { ...problem, file: "a.yaml", line: 2, column: 5, suggestion: "Write b." },
      { ...problem, file: "b\n.yaml", line: undefined, column: undefined },
    ]),
  ).toBe("a.yaml:2:5: Wrong. Write b.\nb\\u000a.yaml: Wrong.\n");
});
