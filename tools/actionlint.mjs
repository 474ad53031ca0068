// Checks the workflows of .github with actionlint, which Go builds once.
import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildAside } from "./build-aside.mjs";

const VERSION = "1.7.12";

const root = fileURLToPath(new URL("..", import.meta.url));

const folder = buildAside(join(root, ".cache", `actionlint-${VERSION}`), (draft) => {
  console.error(`Building actionlint ${VERSION} …`);
  const module = `github.com/rhysd/actionlint/cmd/actionlint@v${VERSION}`;
  const env = { ...process.env, GOBIN: draft };
  execFileSync("go", ["install", module], { env, stdio: ["ignore", "ignore", "inherit"] });
});
const { status } = spawnSync(join(folder, "actionlint"), { cwd: root, stdio: "inherit" });
if (status === 0) console.log(`actionlint ${VERSION} has no complaint.`);
process.exitCode = status ?? 1;
