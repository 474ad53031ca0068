import * as fc from "fast-check";
import { expect, it } from "vitest";
import { isResourceName } from "../core/identifiers.ts";
import { modelResource } from "./model-resource.ts";

it.each(["gpt-5", "claude-sonnet-4-5-20250929", "meta/llama-3:free", "a", "x".repeat(64)])(
  "%s is its own resource",
  (model) => {
    expect(modelResource(model)).toBe(model);
  },
);

const names: readonly (readonly [string, string])[] = [
  ["@cf/meta/llama-3", "cf/meta/llama-3-"],
  ["4o", "model-4o-"],
  ["", "model-"],
  ["🦙", "model-"],
  ["my model (v2)", "my-model-v2-"],
  ["_hidden", "hidden-"],
  ["gpt#5", "gpt-5-"],
  [
    "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4",
    "arn:aws:bedrock:us-east-1:123456789012:inferenc-",
  ],
  ["7".repeat(90), `model-${"7".repeat(41)}-`],
  ["\ud800", "model-"],
  ["../../etc/passwd", "etc/passwd-"],
  ["a\n\u0000b", "a-b-"],
];
it.each(names)("%j begins with %s", (model, beginning) => {
  const resource = modelResource(model);
  expect(resource.slice(0, -16)).toBe(beginning);
  expect(resource.slice(-16)).toMatch(/^[0-9a-f]{16}$/);
  expect(isResourceName(resource)).toBe(true);
});

// Limits and balances are stored under it: it must never change.
it("is stable", () => {
  expect(modelResource("@cf/meta/llama-3")).toBe("cf/meta/llama-3-aa3b46df88f29453");
});

const models = fc.oneof(
  fc.string({ unit: "binary", maxLength: 100 }),
  fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)) }),
  fc.stringMatching(/^[@/.:_A-Za-z0-9-]{0,120}$/),
  fc.string({ unit: fc.constantFrom("a", "A", "4", "-", "/", "@", "\ud83e", "\udd99", " ") }),
);

it("makes valid names, and never one of two models", () => {
  const modelsOf = new Map<string, string>();
  fc.assert(
    fc.property(models, (model) => {
      const resource = modelResource(model);
      expect(isResourceName(resource)).toBe(true);
      expect(modelResource(resource)).toBe(resource);
      expect(modelsOf.get(resource) ?? model).toBe(model);
      modelsOf.set(resource, model);
    }),
    { numRuns: 5000 },
  );
});

it("names that differ only in what is cut or replaced are distinguished", () => {
  const halves = Array.from({ length: 0x800 }, (_, index) => String.fromCharCode(0xd800 + index));
  const alike = [
    ...halves,
    "\ufffd",
    "a b",
    "a  b",
    "a-b ",
    " a-b",
    "a\tb",
    "A b",
    "a\u0301b",
    "\u00e1b",
    ...["x", "y"].map((end) => "m".repeat(64) + end),
    ...["x", "y"].map((begin) => begin + "m".repeat(64)),
    "@cf/a",
    "cf/@a",
    "@@cf/a",
  ];
  expect(new Set(alike.map(modelResource)).size).toBe(alike.length);
});
