// The loader of tools/walk.mjs: puts a note at the start of every function of the built library.
import { fileURLToPath } from "node:url";
import { parseSync } from "oxc-parser";

let root = "";

export function initialize(data) {
  root = data.root;
}

export async function load(url, context, nextLoad) {
  const loaded = await nextLoad(url, context);
  if (!url.startsWith(root)) return loaded;
  return {
    ...loaded,
    source: noted(String(loaded.source), fileURLToPath(url), url.slice(root.length)),
  };
}

/** The code with a call of `globalThis.noteEntry` in front of every function body. */
function noted(code, path, file) {
  const insertions = [];
  visit(parseSync(path, code).program, (node) => {
    if (!/Function/.test(node.type) || node.body === null || node.body === undefined) return;
    const note = `globalThis.noteEntry?.(${JSON.stringify(file)})`;
    if (node.body.type === "BlockStatement") insertions.push([node.body.start + 1, `${note};`]);
    else insertions.push([node.body.start, `(${note},`], [node.body.end, ")"]);
  });
  let result = code;
  for (const [at, text] of insertions.sort(([left], [right]) => right - left))
    result = result.slice(0, at) + text + result.slice(at);
  return result;
}

function visit(node, see) {
  if (Array.isArray(node)) for (const each of node) visit(each, see);
  else if (node !== null && typeof node === "object") {
    if (typeof node.type === "string") see(node);
    for (const key in node) if (key !== "type") visit(node[key], see);
  }
}
