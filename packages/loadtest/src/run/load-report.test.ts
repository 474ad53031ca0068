import { describe, expect, it } from "vitest";
import { buildReport, type ReportInput } from "./load-report.ts";
import { judgeGenerator } from "./judge-generator.ts";
import type { Metrics, Summary } from "./metrics.ts";
import { renderHtml } from "./render-html.ts";
import { renderMarkdown } from "./render-markdown.ts";
import { describeVerdict } from "./report-rows.ts";

const EVIL = `<script>alert("1")</script>|&'`;

function summary(p99: number, max = p99): Summary {
  return { median: p99 / 10, p95: p99 / 2, p99, max };
}

/** What Artillery measured in a run of 20 s, 10 users a second. */
function metrics(
  { counters, summaries, ...more }: Partial<Metrics> = {},
  period: number | string = 0,
): Metrics {
  return {
    period,
    firstCounterAt: 1000,
    lastCounterAt: 21_000,
    ...more,
    counters: {
      "vusers.created": 200,
      "vusers.completed": 200,
      "zae.acquire.count": 150,
      "zae.acquire_of.chat.count": 150,
      "zae.rate_limited.count": 50,
      "zae.rate_limited_of.chat.count": 50,
      ...counters,
    },
    summaries: {
      "zae.acquire.us": summary(4000),
      "zae.rate_limited.us": summary(1000),
      "zae.acquire_of.chat.us": summary(4000),
      "zae.generator.lag_us": summary(3000),
      "vusers.session_length": summary(5),
      ...summaries,
    },
  };
}

const PLAN = { arrivals: 200, seconds: 20 };
const VERIFIED = { passed: true, buckets: 3, grants: 150, closest: 0.9, problems: [], notes: [] };

function report(input: Partial<ReportInput> = {}): ReturnType<typeof buildReport> {
  return buildReport({
    scenario: "simple",
    target: "memory:",
    startedAt: "2026-11-19T00:00:00.000Z",
    artillery: "2.0.34",
    interrupted: false,
    plan: PLAN,
    whole: metrics(),
    periods: [metrics({}, 0), metrics({}, "10000")],
    verification: VERIFIED,
    ...input,
  });
}

describe("a generator", () => {
  it.each<[string, Partial<Metrics>, string | undefined]>([
    ["that keeps to the plan is sound", {}, undefined],
    ["may be 5 % off", { counters: { "vusers.created": 191 } }, undefined],
    [
      "that creates fewer users is too slow",
      { counters: { "vusers.created": 189 } },
      "189 of 200 planned users arrived.",
    ],
    [
      "that needs longer is too slow",
      { lastCounterAt: 22_100 },
      "Arrivals took 21.1 s instead of 20 s.",
    ],
    [
      "may have users that go on after the last arrival",
      { lastCounterAt: 25_000, summaries: { "vusers.session_length": summary(5, 5000) } },
      undefined,
    ],
    [
      "that is late is too slow",
      { summaries: { "zae.generator.lag_us": summary(20_001) } },
      "It was 20 ms late (p99); at most 20 ms are sound.",
    ],
  ])("%s", (_, measured, problem) => {
    expect(judgeGenerator(PLAN, metrics(measured)).problems).toEqual(problem ? [problem] : []);
  });

  it("that is too slow fails the run", () => {
    const slow = report({ whole: metrics({ counters: { "vusers.created": 100 } }) });
    expect(slow.passed).toBe(false);
    expect(describeVerdict(slow)).toMatch(/^FAILED: Generator too slow: 100 of 200/);
  });
});

describe("a run", () => {
  it("passes with refusals, which are not failures", () => {
    expect(report()).toMatchObject({ passed: true, problems: [] });
  });

  it.each<[string, Partial<ReportInput>, RegExp]>([
    ["users failed", { whole: metrics({ counters: { "vusers.failed": 2 } }) }, /2 users failed/],
    ["an answer was too late", { p99BoundMs: 3 }, /p99 was 4.0 ms; the bound is 3 ms/],
    [
      "a refusal was too late",
      { p99BoundMs: 5, whole: metrics({ summaries: { "zae.rate_limited.us": summary(6000) } }) },
      /p99 was 6.0 ms/,
    ],
    [
      "a limit was exceeded",
      { verification: { ...VERIFIED, passed: false, problems: ["tpm of key-1 was exceeded."] } },
      /tpm of key-1 was exceeded/,
    ],
    ["Artillery failed", { problems: ["Artillery ended with 1: x"] }, /ended with 1/],
  ])("fails when %s", (_, input, problem) => {
    expect(report(input).passed).toBe(false);
    expect(describeVerdict(report(input))).toMatch(problem);
  });

  it("that was interrupted reports what was measured, and judges no arrivals", () => {
    const { passed, users, generator, calls } = report({ interrupted: true, whole: undefined });
    expect({ passed, users, generator }).toEqual({
      passed: true,
      users: { created: 400, completed: 400, failed: 0 },
      generator: undefined,
    });
    expect(calls[0]).toEqual({
      name: "acquire",
      count: 300,
      p50Us: 400,
      p95Us: 2000,
      p99Us: 4000,
      maxUs: 4000,
    });
  });

  it("has a row for each period, as long as it measured in it", () => {
    expect(report().periods.map(({ atSeconds, seconds }) => [atSeconds, seconds])).toEqual([
      [0, 9],
      [9, 10],
    ]);
  });
});

describe("the page", () => {
  const evil = report({
    scenario: EVIL,
    target: EVIL,
    problems: [EVIL],
    whole: metrics({ counters: { [`zae.acquire_of.${EVIL}.count`]: 1, [`errors.${EVIL}`]: 1 } }),
  });

  it("has a chart of rate, refusals and latency, with a point for each period", () => {
    const page = renderHtml(report());
    for (const title of ["Rate", "Refusals", "Latency of acquire"])
      expect(page).toContain(`aria-label="${title}"`);
    expect(page.match(/<polyline/g)).toHaveLength(7);
    expect(page.match(/<circle/g)).toHaveLength(14);
    expect(page).toContain("p99 at 14 s: 4 ms");
    expect(page).not.toContain("NaN");
  });

  it("loads nothing from anywhere", () => {
    const page = renderHtml(evil);
    expect(page).not.toMatch(/https?:|\b(?:src|href|url)\b\s*[=(]|@import|<(?:script|link|img)/i);
    expect(page).toContain("default-src 'none'");
  });

  it("and the Markdown escape names", () => {
    expect(renderHtml(evil)).not.toContain("<script");
    const markdown = renderMarkdown(evil);
    expect(markdown.replaceAll(/`[^`]*`/g, "")).not.toContain("<script");
    for (const line of markdown.split("\n").filter((text) => text.includes("alert(")))
      expect(line.replaceAll("\\|", "").split("|").length).toBeLessThan(10);
  });

  it("of a run without any measure is a page too", () => {
    const page = renderHtml(report({ interrupted: true, whole: undefined, periods: [] }));
    expect(page).not.toContain("NaN");
    expect(page).not.toContain("Infinity");
  });
});
