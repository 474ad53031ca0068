// The clients that need Node 22: each in a process of its own, with the package as it was built.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe } from "vitest";
import { node24 } from "../../../../../tools/fetched.mjs";
import { availableOrSkipped } from "../../../../../test/package/available.ts";
import type { Seen } from "./cells.ts";
import { NEWER } from "./child.ts";
import { describeMatrix } from "./describe-matrix.ts";

const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const PROVIDER = pathOf("../../../../../examples/local-provider/dist/provider.js");
const newerNode = availableOrSkipped("Node 24", node24);

describe.skipIf(newerNode === undefined)("under Node 24", () => {
  for (const client of NEWER) describeMatrix(client, () => played(client.name));
});

async function played(name: string): Promise<readonly Seen[]> {
  const program = pathOf("dist/child.js");
  const { stdout } = await promisify(execFile)(newerNode!, [program, PROVIDER, name]);
  return JSON.parse(stdout) as readonly Seen[];
}
