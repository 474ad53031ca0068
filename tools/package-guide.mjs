// Puts README and guide into the library's package, with the pictures of the guide: npm runs this
// before it packs (`prepack`). What concerns a clone stands between comments, and is left out.
// Other links that leave the guide lead to files that the package does not have, so only their text
// is kept.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const docs = fileURLToPath(new URL("../docs/", import.meta.url));
const packed = fileURLToPath(new URL("../packages/limiter/docs/", import.meta.url));

rmSync(packed, { recursive: true, force: true });
for (const name of readdirSync(join(docs, "guide"), { recursive: true })) {
  if (!name.endsWith(".md")) continue;
  const page = join("guide", name);
  mkdirSync(join(packed, dirname(page)), { recursive: true });
  writeFileSync(join(packed, page), withoutLinksAway(page));
}

const clone = /<!-- clone -->\n.*?<!-- \/clone -->\n/gs;
const readme = readFileSync(join(docs, "../README.md"), "utf8").replaceAll(clone, "");
writeFileSync(join(packed, "../README.md"), readme);

function withoutLinksAway(page) {
  const links = /(!?)\[([^\]]*)\]\((?!https?:|#)([^)#]+)[^)]*\)/g;
  return readFileSync(join(docs, page), "utf8").replaceAll(links, (link, mark, text, target) => {
    const path = join(dirname(page), target);
    if (mark === "") return relative("guide", path).startsWith("..") ? text : link;
    cpSync(join(docs, path), join(packed, path));
    return link;
  });
}
