// The clients that need Node 22: in a process of their own, with the package as it was built.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect } from "vitest";
import { node24 } from "../../../../../tools/fetched.mjs";
import { availableOrSkipped } from "../../../../../test/package/available.ts";
import type { Seen } from "./cells.ts";
import { NEWER } from "./child.ts";
import { describeMatrix, TIMEOUT_MS } from "./describe-matrix.ts";

const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const PROVIDER = pathOf("../../../../../examples/local-provider/dist/provider.js");
const newerNode = availableOrSkipped("Node 24", node24);

describe.skipIf(newerNode === undefined)("under Node 24", () => {
  let seen: Readonly<Record<string, readonly Seen[]>>;
  beforeAll(async () => {
    const args = [pathOf("dist/child.js"), PROVIDER];
    const { stdout, stderr } = await promisify(execFile)(newerNode!, args);
    expect(stderr).not.toContain("WARN_LIMITER");
    seen = JSON.parse(stdout) as typeof seen;
  }, TIMEOUT_MS);
  for (const client of NEWER) describeMatrix(client, async () => seen[client.name]!);
});
