import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const pictures = readdirSync(`${root}docs/pictures`).filter((name) => name.endsWith(".svg"));

it("the drawings are what the library does now", async () => {
  const check = promisify(execFile)(process.execPath, [`${root}tools/pictures.mjs`, "--check"]);
  await expect(check).resolves.toMatchObject({ stderr: "" });
}, 30_000);

describe.each(pictures)("%s", (name) => {
  const svg = readFileSync(`${root}docs/pictures/${name}`, "utf8");

  it("is readable in light and dark, and says what it shows", () => {
    expect(svg).toContain("prefers-color-scheme: dark");
    expect(svg).toMatch(/<title>[^<]+<\/title>/);
    const undeclared = [...svg.matchAll(/var\((--[\w-]+)\)/g)].filter(
      ([, variable]) => svg.split(`${variable}:`).length !== 3,
    );
    expect(undeclared).toEqual([]);
  });

  it("is shown by a document", () => {
    const documents = [
      "README.md",
      ...readdirSync(`${root}docs/guide`).map((file) => `docs/guide/${file}`),
    ]
      .filter((file) => file.endsWith(".md"))
      .map((file) => readFileSync(root + file, "utf8"));
    expect(documents.some((text) => text.includes(`pictures/${name})`))).toBe(true);
  });
});
