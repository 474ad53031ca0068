import { manifestYaml } from "@zae-limiter/infra/manifest";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";

/** Words that some reader of YAML takes for something else than text. */
const WORDS =
  "no yes y n on Off true null Null ~ 1 010 0x1F 0o7 0b1 1e3 1_000 12:30:45 1:30.5 .5 +1 -1 .inf .nan = << - ? : 2001-01-01 2001-01-01T00:00:00Z !x &a *a %d @b `c #".split(
    " ",
  );

describe("a manifest as YAML", () => {
  it("is written in blocks, without quotes where none are needed", () => {
    const manifest = {
      namespace: "team-a",
      system: { on_unavailable: "allow", limits: { tpm: "10000/min:15000" } },
      entities: { "user@example.com": { cascade: true, metadata: { plan: "gold plan" } }, x: {} },
    };
    expect(manifestYaml(manifest)).toBe(
      [
        "namespace: team-a",
        "system:",
        "  on_unavailable: allow",
        "  limits:",
        "    tpm: 10000/min:15000",
        "entities:",
        "  user@example.com:",
        "    cascade: true",
        "    metadata:",
        "      plan: gold plan",
        "  x: {}",
        "",
      ].join("\n"),
    );
  });

  it.each(WORDS)("is read by YAML 1.1 and 1.2 alike with the word %s", (word) => {
    const manifest = { namespace: word, entities: { [word]: { metadata: { [word]: word } } } };
    const text = manifestYaml(manifest);
    expect(parse(text)).toEqual(manifest);
    expect(parse(text, { version: "1.1" })).toEqual(manifest);
    expect(text).toMatch(/^namespace: "/);
  });

  it("is read as it was written with keys that are too long for one line", () => {
    const long = "\u0085 # ".repeat(256);
    const value = { metadata: { [long]: long, short: long } };
    expect(parse(manifestYaml(value))).toEqual(value);
  });

  it("is read as it was written, whatever names and metadata contain", () => {
    const awkward = fc.constantFrom(
      ..."\u0085\u2028\u202e\ufeff\u007f\u009f\ufffe\t\n\r #:'\"\\-😀",
    );
    const text = fc.oneof(
      fc.constantFrom(...WORDS, "---", "..."),
      fc.string({ unit: fc.oneof(awkward, fc.string({ unit: "binary", minLength: 1 })) }),
    );
    const manifest = fc.record({
      name: text,
      metadata: fc.dictionary(text, text, { maxKeys: 5 }),
    });
    fc.assert(
      fc.property(manifest, (value) => {
        const written = manifestYaml(value);
        expect(parse(written)).toEqual(value);
        expect(parse(written, { version: "1.1" })).toEqual(value);
        expect(written).not.toMatch(
          /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]/u,
        );
      }),
      { numRuns: 40 },
    );
  });
});
