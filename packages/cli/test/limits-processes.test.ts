// Processes of the built program that apply manifests to one file: killed, stopped, two at once.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe } from "vitest";
import { applyingProcesses } from "./limits-processes.ts";

describe("on a SQLite file", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "zae-limiter-cli-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  applyingProcesses(() => `sqlite:${folder}/limits.db`, {
    entities: [500, 1000],
    seeds: [1, 2],
  });
});
