import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { stackTemplate } from "../src/template/stack-template.ts";

const page = readFileSync(
  new URL("../../../docs/guide/capacity-planning.md", import.meta.url),
  "utf8",
);
const { Parameters } = stackTemplate();

it("the guide's page on capacity names parameters that the template has", () => {
  const named = [...page.matchAll(/`((?:[A-Z][a-z]+){2,})`/g)].map(([, name]) => name!);
  // What is consumed is a metric, and a field of answers.
  const parameters = named.filter((name) =>
    /^(?!Consumed).*(?:Capacity|Lambda|Billing|Concurrency)/.test(name),
  );
  expect(new Set(parameters).size).toBeGreaterThan(5);
  expect(parameters.filter((name) => !(name in Parameters))).toEqual([]);
});
