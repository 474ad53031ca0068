import { readFileSync } from "node:fs";
import { afterAll, expect, it } from "vitest";
import { learningEstimator } from "../../../src/llm/estimating/learning-estimator.ts";
import { simpleEstimator } from "../../../src/llm/estimating/simple-estimator.ts";
import type { Estimator } from "../../../src/llm/tokens/llm-call.ts";
import { ENGLISH, simulate, type Workload } from "./simulated-calls.ts";

const CALLS = 20_000;
const GUIDE = new URL("../../../../../docs/guide/llm-estimates.md", import.meta.url);
/** About three tokens in four characters. */
const CHINESE = { bytesPerToken: 4, bytesPerCharacter: 3 };
const tables: string[] = [];
afterAll(() => console.log(tables.join("\n\n")));

it("the guide shows what each estimator reserves", () => {
  const workloads = {
    "short answers": { median: 50, sigma: 0.5, maxOutputTokens: 4096, ...ENGLISH },
    chat: { median: 400, sigma: 1, maxOutputTokens: 4096, ...ENGLISH },
    "long answers": { median: 1500, sigma: 0.7, maxOutputTokens: 16_384, ...ENGLISH },
    "short answers, Chinese": { median: 50, sigma: 0.5, maxOutputTokens: 256, ...CHINESE },
  } satisfies Record<string, Workload>;
  const estimators: Readonly<Record<string, (workload: Partial<typeof CHINESE>) => Estimator>> = {
    "`learningEstimator()`": () => learningEstimator(),
    "`learningEstimator({ quantile: 0.95 })`": () => learningEstimator({ quantile: 0.95 }),
    "`simpleEstimator()`": () => simpleEstimator(),
    '`simpleEstimator({ output: "max" })`': () => simpleEstimator({ output: "max" }),
    "5000 for every call": () => ({ estimate: () => ({ input: 0, output: 5000 }) }),
    "characters ÷ 4 + `max_tokens`": ({ bytesPerCharacter = 1 }) => ({
      estimate: ({ textBytes, maxOutputTokens }) => ({
        input: Math.ceil(textBytes / bytesPerCharacter / 4),
        output: maxOutputTokens!,
      }),
    }),
  };
  const rows = Object.entries(estimators).map(([name, make]) => {
    const cells = Object.values(workloads).map((workload) => {
      const { reservedByUsed, callsAbove } = simulate(make(workload), workload, {
        seed: 1,
        calls: CALLS,
      });
      return `${reservedByUsed.toFixed(1)} (${(callsAbove * 100).toFixed(0)} %)`;
    });
    return `| ${[name, ...cells].join(" | ")} |`;
  });
  expectInGuide([
    `| reserved | ${Object.keys(workloads).join(" | ")} |`,
    "|---|---|---|---|---|",
    ...rows,
  ]);
});

it("the guide shows how well the quantile is met", () => {
  const sigmas = [0.5, 1, 1.5, 2];
  const rows = [0.5, 0.8, 0.95].map((quantile) => {
    const cells = sigmas.map((sigma) => {
      const workload = { median: 400, sigma, maxOutputTokens: undefined, ...ENGLISH };
      const { answersAbove } = simulate(learningEstimator({ quantile }), workload, {
        seed: 1,
        calls: CALLS,
      });
      return `${(answersAbove * 100).toFixed(1)} %`;
    });
    return `| ${[quantile, `${((1 - quantile) * 100).toFixed(0)} %`, ...cells].join(" | ")} |`;
  });
  const head = sigmas.map((sigma) => `σ = ${sigma}`).join(" | ");
  expectInGuide([`| quantile | should be | ${head} |`, "|---|---|---|---|---|---|", ...rows]);
});

function expectInGuide(lines: readonly string[]): void {
  const table = lines.join("\n");
  tables.push(table);
  expect(readFileSync(GUIDE, "utf8")).toContain(table);
}
