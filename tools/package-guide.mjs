// Puts the guide into the library's package: npm runs this before it packs (`prepack`). Links that
// leave the guide lead to files that the package does not have, so only their text is kept.
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const guide = fileURLToPath(new URL("../docs/guide/", import.meta.url));
const packed = fileURLToPath(new URL("../packages/limiter/docs/guide/", import.meta.url));

rmSync(packed, { recursive: true, force: true });
cpSync(guide, packed, { recursive: true });
for (const name of readdirSync(packed).filter((file) => file.endsWith(".md"))) {
  const page = readFileSync(packed + name, "utf8");
  writeFileSync(packed + name, page.replaceAll(/(?<!!)\[([^\]]+)\]\(\.\.\/[^)]*\)/g, "$1"));
}
