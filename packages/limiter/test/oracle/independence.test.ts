import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

it("the oracle shares nothing with the code that it judges, not even types", () => {
  const folder = new URL("./", import.meta.url);
  const files = readdirSync(folder).filter((file) => !file.endsWith(".test.ts"));
  expect(files).toContain("oracle-bucket.ts");
  for (const file of files) {
    const imported = [
      ...readFileSync(new URL(file, folder), "utf8").matchAll(/(?:from|import\()\s*"([^"]+)"/g),
    ].map(([, path]) => path);
    for (const path of imported)
      expect(files, `${file} imports ${path}`).toContain(path?.replace("./", ""));
  }
});
