// An earlier commit of the library, built once, for benchmarks of what came after it.
//
//   node tools/earlier-build.mjs 97f3ee5b   builds it, then prints where it is
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildAside } from "./build-aside.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const LIBRARY = "packages/limiter";

/** What the library is built from, without its tests. */
const SOURCES = [
  "tsconfig.base.json",
  ...["package.json", "tsconfig.json", "src"].map((name) => `${LIBRARY}/${name}`),
  ":(exclude)*.test.ts",
];

const [commit] = process.argv.slice(2);
if (commit === undefined) throw new Error("Say which: node tools/earlier-build.mjs COMMIT");
try {
  // What it imports is found in the folders above.
  const folder = buildAside(join(root, ".cache", `limiter-${commit}`), (draft) => {
    const archive = ["archive", commit, "--", ...SOURCES];
    const input = execFileSync("git", archive, { cwd: root, maxBuffer: 2 ** 28 });
    execFileSync("tar", ["-x", "-C", draft], { input });
    const compiler = join(root, "node_modules/typescript/bin/tsc");
    execFileSync(process.execPath, [compiler, "-p", join(draft, LIBRARY)], {
      stdio: ["ignore", "inherit", "inherit"],
    });
  });
  console.log(join(folder, LIBRARY, "dist"));
} catch (error) {
  // A command that failed has said why.
  if (error.status === undefined) console.error(error.message);
  process.exitCode = 1;
}
