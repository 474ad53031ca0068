// The clients that need Node 22: in a process of their own, with the package as it was built.
import { beforeAll, describe, expect } from "vitest";
import { isSkipped, runNewer, TIMEOUT_MS } from "../newer-node.ts";
import type { Seen } from "./cells.ts";
import { NEWER } from "./child.ts";
import { describeMatrix } from "./describe-matrix.ts";

describe.skipIf(isSkipped)("under Node 24", () => {
  let seen: Readonly<Record<string, readonly Seen[]>>;
  beforeAll(async () => {
    const { printed, stderr } = await runNewer(new URL("child.ts", import.meta.url));
    expect(stderr).not.toContain("WARN_LIMITER");
    seen = printed as typeof seen;
  }, TIMEOUT_MS);
  for (const client of NEWER) describeMatrix(client, async () => seen[client.name]!);
});
