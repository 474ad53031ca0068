// The loader of tools/walk.mjs: makes every function of the built library note when it is entered.
import { fileURLToPath } from "node:url";
import { parseSync } from "oxc-parser";

let root = "";

export function initialize(data) {
  root = data.root;
}

export async function load(url, context, nextLoad) {
  const loaded = await nextLoad(url, context);
  if (!url.startsWith(root)) return loaded;
  const file = url.slice(root.length).replace(/\.js$/, ".ts");
  return { ...loaded, source: withNotes(String(loaded.source), fileURLToPath(url), file) };
}

/** The code with a call of `globalThis.noteEntry` in front of every function's body. */
function withNotes(code, path, file) {
  const insertions = [];
  visit(parseSync(path, code).program, (node) => {
    if (!node.type.includes("Function") || !node.body) return;
    const note = `globalThis.noteEntry?.(${JSON.stringify(file)})`;
    if (node.body.type === "BlockStatement") insertions.push([node.body.start + 1, `${note};`]);
    else insertions.push([node.body.start, `(${note},`], [node.body.end, ")"]);
  });
  // From the end, so that the positions of those before stay true.
  insertions.sort(([left], [right]) => right - left);
  return insertions.reduce((text, [at, part]) => text.slice(0, at) + part + text.slice(at), code);
}

function visit(node, see) {
  if (Array.isArray(node)) return node.forEach((each) => visit(each, see));
  if (node === null || typeof node !== "object") return;
  if (typeof node.type === "string") see(node);
  for (const child of Object.values(node)) visit(child, see);
}
