import { availableParallelism } from "node:os";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const source = (path: string): string =>
  fileURLToPath(new URL(`./packages/limiter/src/${path}`, import.meta.url));

const infra = (path: string): string =>
  fileURLToPath(new URL(`./packages/infra/src/${path}`, import.meta.url));

const resolve = {
  alias: [
    { find: /^zae-limiter$/, replacement: source("index.ts") },
    { find: /^zae-limiter\/memory$/, replacement: source("repository/memory/index.ts") },
    { find: /^zae-limiter\/sqlite$/, replacement: source("repository/sqlite/index.ts") },
    { find: /^zae-limiter\/dynamodb$/, replacement: source("repository/dynamodb/index.ts") },
    {
      find: /^zae-limiter\/dynamodb\/schema$/,
      replacement: source("repository/dynamodb/schema/index.ts"),
    },
    {
      find: /^zae-limiter\/aggregator$/,
      replacement: source("repository/dynamodb/aggregator/index.ts"),
    },
    {
      find: /^@zae-limiter\/contract$/,
      replacement: fileURLToPath(new URL("./packages/contract/src/index.ts", import.meta.url)),
    },
    {
      find: /^@zae-limiter\/upgrade$/,
      replacement: new URL("./packages/upgrade/src/index.ts", import.meta.url).pathname,
    },
    {
      find: /^artillery-engine-zae-limiter\/run$/,
      replacement: new URL("./packages/loadtest/src/run/index.ts", import.meta.url).pathname,
    },
    {
      find: /^artillery-engine-zae-limiter$/,
      replacement: new URL("./packages/loadtest/src/index.ts", import.meta.url).pathname,
    },
    { find: /^zae-limiter\/backend$/, replacement: source("backend/index.ts") },
    { find: /^@zae-limiter\/infra$/, replacement: infra("index.ts") },
    { find: /^zae-limiter\/manifest$/, replacement: source("manifest/index.ts") },
    { find: /^@zae-limiter\/infra\/manifest$/, replacement: infra("manifest/index.ts") },
    { find: /^@zae-limiter\/infra\/cdk$/, replacement: infra("cdk/index.ts") },
    {
      find: /^zae-limiter\/dynamodb-internals$/,
      replacement: source("repository/dynamodb/internals/index.ts"),
    },
    { find: /^zae-limiter\/http$/, replacement: source("http/index.ts") },
    {
      find: /^zae-limiter\/(express|fastify|hono)$/,
      replacement: source("http/$1/index.ts"),
    },
    {
      find: /^zae-limiter\/(stores|diagnostics|otel|llm)$/,
      replacement: source("$1/index.ts"),
    },
    {
      find: /^zae-limiter\/(ai-sdk|openai|anthropic|langchain)$/,
      replacement: source("llm/$1/index.ts"),
    },
    { find: /^zae-limiter\/open$/, replacement: source("open/index.ts") },
    { find: /^zae-limiter\/testing$/, replacement: source("testing/index.ts") },
  ],
};

const isFirst = ({ moduleId }: TestSpecification): boolean =>
  basename(moduleId) === "lease-warnings.test.ts";

/**
 * Lets the test of leases that are garbage collected come first. In a process in which the tests of
 * LangChain's callbacks have run, V8 calls no finalization registry any more, not even a plain one.
 */
class CollectedFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return [...sorted.filter(isFirst), ...sorted.filter((file) => !isFirst(file))];
  }
}

export default defineConfig(({ mode }) => ({
  resolve,
  test: {
    include: [
      "packages/*/src/**/*.test.ts",
      "packages/*/test/**/*.test.ts",
      "packages/lambda/{aggregator,provisioner}/**/*.test.ts",
      "examples/*/*.test.ts",
      "test/**/*.test.ts",
    ],
    typecheck: { enabled: false },
    // The SDK says in every worker that it will want a newer Node.
    env: { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true" },
    sequence: { sequencer: CollectedFirst },
    globalSetup: ["packages/limiter/test/support/shared-engine.ts"],
    // The default of 5 s is short for a machine that is busy with other things.
    testTimeout: 20_000,
    // One fewer than there are cores would be one on a machine with two, where two leave the cores
    // idle for half of the time: they wait for an engine.
    maxWorkers: Math.max(3, availableParallelism() - 1),
    // Files share processes: loading what they test takes longer than most of them, so they leave
    // the process as they found it. Changing sources between runs needs fresh processes
    // (tools/mutation-runner.mjs).
    isolate: mode === "mutations",
  },
}));
