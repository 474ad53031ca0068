import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { marshal, type AttributeValue } from "../transport/attribute-values.ts";
import { ExpressionBuilder } from "./update-expression.ts";

const TARGET = ["t", { PK: { S: "p" }, SK: { S: "s" } }, "ALL NEW"] as const;

/** One call of the builder. */
interface Step {
  readonly does: "set" | "add" | "remove" | "equal" | "within" | "older" | "missing" | "other";
  readonly attribute: string;
  readonly value: number;
}

/** Few values and attributes, so that different updates have much in common. */
const step: fc.Arbitrary<Step> = fc.record({
  does: fc.constantFrom("set", "add", "remove", "equal", "within", "older", "missing", "other"),
  attribute: fc.constantFrom("rf", "b_rpm_tk", "b_a-b.c_tk", "o1"),
  value: fc.integer({ min: 1, max: 3 }),
});

describe("an update", () => {
  it("says what it was given, with an alias for every attribute and value", () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 6 }), (steps) => {
        const { update, conditions } = saidBy(steps);
        const built = runBuilder(steps).build();
        expect(resolveAliases(built.UpdateExpression, built)).toBe(update);
        expect(resolveAliases(built.ConditionExpression, built)).toBe(conditions.join(" AND "));
      }),
      { numRuns: 300 },
    );
  });

  it("has one alias for a value that it names twice, and one for an attribute", () => {
    const builder = new ExpressionBuilder();
    builder.requireWithin("a", { least: 5, most: 7 });
    builder.set("b", 5);
    builder.set("a", 7);
    expect(builder.build()).toEqual({
      UpdateExpression: "SET #n1=:v0,#n0=:v1",
      ConditionExpression: "#n0>=:v0 AND #n0<=:v1",
      ExpressionAttributeNames: { "#n0": "a", "#n1": "b" },
      ExpressionAttributeValues: { ":v0": { N: "5" }, ":v1": { N: "7" } },
    });
  });

  it("is a statement whose parameters stand in the order of their places", () => {
    for (const [tokens, stamp] of [
      [5, 9],
      [9, 9],
      [6, 8],
    ] as const) {
      const builder = new ExpressionBuilder();
      builder.requireEqual("rf", stamp);
      builder.requirePrefixAndLess("o1", "me.", "me.2");
      builder.requireMissing("o2");
      builder.add("b_rpm_tk", -tokens);
      builder.set("rf", tokens);
      builder.remove("mi");
      expect(builder.statement(...TARGET)).toEqual({
        Statement:
          'UPDATE "t" SET "b_rpm_tk"=b_rpm_tk+?,"rf"=? REMOVE "mi" WHERE "PK"=? AND "SK"=? ' +
          'AND "rf"=? AND begins_with("o1",?) AND "o1"<? AND "o2" IS MISSING RETURNING ALL NEW *',
        Parameters: [-tokens, tokens, "p", "s", stamp, "me.", "me.2"].map((each) => marshal(each)),
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      });
    }
  });

  it("is not a statement when it has a condition of its own words, removes twice, or begins a sum", () => {
    const builder = new ExpressionBuilder();
    builder.set("a", 1);
    builder.remove("b");
    expect(builder.statement(...TARGET)).toBeDefined();
    builder.remove("c");
    expect(builder.statement(...TARGET)).toBeUndefined();
    const other = new ExpressionBuilder();
    other.require(`attribute_exists(${other.name("a")})`);
    expect(other.statement(...TARGET)).toBeUndefined();
    const sum = new ExpressionBuilder();
    sum.begin("a", 0);
    expect(sum.changes("a")).toBe(true);
    expect(sum.build().UpdateExpression).toBe("ADD #n0 :v0");
    expect(sum.statement(...TARGET)).toBeUndefined();
  });
});

function runBuilder(steps: readonly Step[]): ExpressionBuilder {
  const builder = new ExpressionBuilder();
  for (const { does, attribute, value } of steps)
    if (does === "set") builder.set(attribute, value);
    else if (does === "add") builder.add(attribute, value);
    else if (does === "remove") builder.remove(attribute);
    else if (does === "equal") builder.requireEqual(attribute, value);
    else if (does === "within") builder.requireWithin(attribute, { least: value, most: 2 });
    else if (does === "older") builder.requirePrefixAndLess(attribute, "me.", `me.${value}`);
    else if (does === "missing") builder.requireMissing(attribute);
    else builder.require(`(${builder.name(attribute)}<>${builder.value(value)})`);
  return builder;
}

/** What the steps say, without aliases. */
function saidBy(steps: readonly Step[]): {
  readonly update: string;
  readonly conditions: readonly string[];
} {
  const ofKind = (does: Step["does"], text: (step: Step) => string): string =>
    steps
      .filter((each) => each.does === does)
      .map(text)
      .join();
  const clauses = [
    ["SET ", ofKind("set", ({ attribute, value }) => `${attribute}=${value}`)],
    ["ADD ", ofKind("add", ({ attribute, value }) => `${attribute} ${value}`)],
    ["REMOVE ", ofKind("remove", ({ attribute }) => attribute)],
  ];
  return {
    update: clauses
      .filter(([, text]) => text !== "")
      .map((clause) => clause.join(""))
      .join(" "),
    conditions: steps.flatMap(({ does, attribute, value }) => {
      if (does === "equal") return [`${attribute}=${value}`];
      if (does === "within") return [`${attribute}>=${value}`, `${attribute}<=2`];
      if (does === "older") return [`begins_with(${attribute},me.)`, `${attribute}<me.${value}`];
      if (does === "missing") return [`attribute_not_exists(${attribute})`];
      return does === "other" ? [`(${attribute}<>${value})`] : [];
    }),
  };
}

function resolveAliases(
  expression: string,
  {
    ExpressionAttributeNames: names = {},
    ExpressionAttributeValues: values = {},
  }: {
    readonly ExpressionAttributeNames?: Readonly<Record<string, string>>;
    readonly ExpressionAttributeValues?: Readonly<Record<string, AttributeValue>>;
  },
): string {
  return expression.replaceAll(
    /[#:]\w+/g,
    (alias) => names[alias] ?? Object.values(values[alias]!).join(),
  );
}
