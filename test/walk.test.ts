import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { whyMissing } from "../packages/limiter/test/support/engine-process.ts";

const ROOT = join(import.meta.dirname, "..");
const MOST_FILES = 42;
const MOST_HOPS = 130;

interface Walk {
  readonly files: readonly string[];
  readonly hops: readonly string[];
}

describe.skipIf(whyMissing("dynoxide") !== undefined)("a warm acquire on DynamoDB", () => {
  const { files, hops } = walk();

  it("is a walk that a reader can follow", () => {
    expect(files.length).toBeLessThanOrEqual(MOST_FILES);
    expect(hops.length).toBeLessThanOrEqual(MOST_HOPS);
    expect(files[0]).toBe("limiter/rate-limiter.ts");
    expect(files).toContain("repository/dynamodb/transport/sdk-transport.ts");
  });

  it("visits the dozen files that ARCHITECTURE.md lists, in that order", () => {
    const page = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8");
    const [, table = ""] = /<!-- walk -->([^]*)<!-- \/walk -->/.exec(page) ?? [];
    const listed = [...table.matchAll(/^\| `(.*)` \|/gm)].map(([, file]) => file);
    expect(listed.length).toBe(12);
    expect(files.filter((file) => listed.includes(file))).toEqual(listed);
  });
});

/** What `npm run walk` shows; it runs the built library. */
function walk(): Walk {
  if (whyMissing("dynoxide") !== undefined) return { files: [], hops: [] };
  const output = execFileSync(process.execPath, ["tools/walk.mjs", "--json"], {
    cwd: ROOT,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, DYNAMODB_ENDPOINT: "" },
  });
  return JSON.parse(output) as Walk;
}
