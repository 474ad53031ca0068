// Bundles the Lambda functions: one file each, with everything that it needs, and tells its size.
//
//   npm run lambda
import { statSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const folder = fileURLToPath(new URL("../packages/lambda/", import.meta.url));

/** The functions, by the folders of their sources. */
const FUNCTIONS = ["aggregator"];

/** Packages that are not ESM call `require` for Node's own modules. */
const BANNER = `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);`;

/** Bundles a function, and returns the path of the bundle. */
export async function bundleFunction(name, outfile = `${folder}dist/${name}/index.mjs`) {
  await build({
    entryPoints: [`${folder}${name}/handler.ts`],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node22",
    mainFields: ["module", "main"],
    banner: { js: BANNER },
    minify: true,
    logLevel: "warning",
  });
  return outfile;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  for (const name of FUNCTIONS) {
    const path = await bundleFunction(name);
    console.log(`${path}: ${Math.round(statSync(path).size / 1000)} kB`);
  }
