// AWS's own DynamoDB Local as a second opinion for the tests: fetched with Maven once, started on
// 127.0.0.1 only.
//
//   node tools/dynamodb-local.mjs              fetches and compiles, then prints where it is
//   node tools/dynamodb-local.mjs --port 8000  also runs it until it is interrupted
//
// Once it is there, ZAEL_DYNAMODB_ENGINE=dynamodb-local npx vitest run connected starts it by
// itself.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { buildAside } from "./build-aside.mjs";

/** The newest version in Maven's repository. */
const VERSION = "2.6.1";

const root = fileURLToPath(new URL("..", import.meta.url));
/** Not below node_modules, which an installation empties. */
const folder = join(root, ".cache", `dynamodb-local-${VERSION}`);

/** Whether it was fetched: tests ask, and never fetch by themselves. */
export function isDynamoDbLocalInstalled() {
  return existsSync(folder);
}

/** Fetches the engine and compiles its launcher, unless that was done. */
export function installDynamoDbLocal() {
  return buildAside(folder, (draft) => {
    const libraries = join(draft, "lib");
    writeFileSync(join(draft, "pom.xml"), pom());
    const quiet = ["--batch-mode", "--quiet"];
    run("mvn", [
      ...quiet,
      "-f",
      join(draft, "pom.xml"),
      "dependency:copy-dependencies",
      `-DoutputDirectory=${libraries}`,
    ]);
    run("javac", [
      "-cp",
      join(libraries, "*"),
      "-d",
      join(draft, "classes"),
      join(root, "packages/cli/java/LocalDynamoDb.java"),
    ]);
  });
}

/** Starts an installed engine that forgets everything when it ends. */
export function startDynamoDbLocal(port, options = {}) {
  const libraries = join(folder, "lib");
  const classpath = [join(folder, "classes"), join(libraries, "*")].join(delimiter);
  const engine = [
    "LocalDynamoDb",
    "-inMemory",
    "-sharedDb",
    "-disableTelemetry",
    "-port",
    String(port),
  ];
  return spawn(
    "java",
    [`-Dsqlite4java.library.path=${libraries}`, "-cp", classpath, ...engine],
    options,
  );
}

function run(command, args) {
  execFileSync(command, args, { stdio: ["ignore", "inherit", "inherit"] });
}

function pom() {
  return `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId>
  <artifactId>dynamodb-local</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>com.amazonaws</groupId>
      <artifactId>DynamoDBLocal</artifactId>
      <version>${VERSION}</version>
    </dependency>
  </dependencies>
</project>
`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [option, port] = process.argv.slice(2);
  console.log(`DynamoDB Local ${VERSION} is in ${installDynamoDbLocal()}`);
  if (option === "--port") startDynamoDbLocal(port, { stdio: "inherit" });
}
