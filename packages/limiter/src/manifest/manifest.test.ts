import { describe, expect, it } from "vitest";
import { Limit } from "../core/limit.ts";
import type { ManifestDocument } from "./document.ts";
import { readManifest, type Manifest } from "./manifest.ts";
import { ManifestError, type ManifestProblem } from "./problems.ts";

describe("what a manifest declares", () => {
  it("is everything that its documents name, and nothing else", () => {
    const manifest = read({
      namespace: "team-a",
      system: {
        on_unavailable: "allow",
        audit_retention_days: 30,
        usage_retention_days: 90,
        limits: {
          rpm: { capacity: 100, burst: 150, refill_amount: 100, refill_period: 60 },
          tpm: "10000/min:15000",
        },
      },
      resources: { "gpt-4": { inherit: true, limits: { tpm: "50000/min" } } },
      entities: {
        acme: { name: "Acme Inc", metadata: { plan: "gold" } },
        "key-1": {
          parent: "acme",
          cascade: true,
          resources: {
            _default_: { limits: { rpm: 500 } },
            "gpt-4": { limits: { tpm: { capacity: 20_000 } } },
          },
        },
      },
    });
    expect(manifest.namespace).toBe("team-a");
    expect(manifest.declared).toEqual({
      system: {
        onUnavailable: "allow",
        auditRetentionDays: 30,
        usageRetentionDays: 90,
        limits: [
          Limit.perMinute("rpm", 100, { burst: 150 }),
          Limit.perMinute("tpm", 10_000, { burst: 15_000 }),
        ],
      },
      resources: { "gpt-4": { limits: [Limit.perMinute("tpm", 50_000)], inherit: true } },
      entities: {
        acme: { name: "Acme Inc", metadata: { plan: "gold" }, resources: {} },
        "key-1": {
          parentId: "acme",
          cascade: true,
          resources: {
            _default_: { limits: [Limit.perMinute("rpm", 500)], inherit: false },
            "gpt-4": { limits: [Limit.perMinute("tpm", 20_000)], inherit: false },
          },
        },
      },
    });
  });

  it("is nothing for sections with nothing below", () => {
    const empty = { resources: {}, entities: {} };
    expect(read({ namespace: "a" }).declared).toEqual(empty);
    expect(
      read({ namespace: "a", system: null, resources: null, entities: null }).declared,
    ).toEqual(empty);
    expect(read({ namespace: "a", entities: { acme: null } }).declared.entities).toEqual({
      acme: { resources: {} },
    });
  });
});

function read(...contents: readonly unknown[]): Manifest {
  return readManifest(contents.map((content, index) => document(`${index}.yaml`, content)));
}

/** A document whose positions are the depth of a path, and the length of its last key. */
function document(file: string, content: unknown): ManifestDocument {
  return {
    file,
    content,
    positionOf: (path) => ({ line: path.length + 1, column: String(path.at(-1) ?? "").length + 1 }),
  };
}

function problemsOf(...contents: readonly unknown[]): readonly ManifestProblem[] {
  try {
    read(...contents);
  } catch (error) {
    if (error instanceof ManifestError) return error.problems;
    throw error;
  }
  return [];
}

it("needs a namespace", () => {
  expect(problemsOf({}).map(({ message }) => message)).toEqual([
    "Invalid manifest: must name its namespace.",
  ]);
});
