import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";

/** Writes manifests into a folder of each test. JSON is YAML, so values are enough. */
export function manifestFiles(): (content: object) => string {
  let folder: string;
  let count = 0;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "zae-limiter-manifest-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  return (content) => {
    count += 1;
    const file = join(folder, `limits-${count}.json`);
    writeFileSync(file, JSON.stringify({ namespace: "default", ...content }));
    return file;
  };
}

/** A manifest of every level. */
export const FIRST = {
  system: { on_unavailable: "allow", limits: { rpm: 100 } },
  resources: { "gpt-4": { limits: { tpm: "10000/min:15000" } } },
  entities: {
    acme: { name: "Acme Inc" },
    "key-1": { parent: "acme", resources: { _default_: { limits: { rpm: 500 } } } },
  },
};

/** Another rate for the system, and no more limits of the resource. */
export const SECOND = {
  ...FIRST,
  system: { on_unavailable: "allow", limits: { rpm: 200 } },
  resources: {},
};

/** So many entities, each with a limit of its own that tells manifests apart. */
export function manyEntities(
  count: number,
  { rpm, from = 0 }: { readonly rpm: number; readonly from?: number },
): {
  readonly entities: Readonly<
    Record<string, { readonly resources: { readonly "gpt-4": { limits: { rpm: number } } } }>
  >;
} {
  const ids = Array.from({ length: count }, (_, index) => `key-${from + index}`);
  const resources = { "gpt-4": { limits: { rpm } } };
  return { entities: Object.fromEntries(ids.map((id) => [id, { resources }])) };
}
