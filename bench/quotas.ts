/*
 * What quotas cost: `npm run bench:quotas`; after `--` come `--quick` to see that it works, and
 * `memory` or `dynamodb` to run a part. In memory, rates are compared with the build before there
 * were quotas, and quotas with rates; on DynamoDB, quotas with rates and with the calendar quotas
 * of the original. bench/README.md says how to read it.
 */
import { availableParallelism } from "node:os";
import { printVerdicts } from "./harness.ts";
import { measureDynamo } from "./quotas/dynamodb.ts";
import { measureMemory } from "./quotas/memory.ts";

/** A process that does not answer must not keep the benchmark running. */
const WATCHDOG_MS = 1_200_000;

const words = process.argv.slice(2);
const quick = words.includes("--quick");
const isWanted = (part: string): boolean =>
  words.includes(part) || !words.some((word) => word !== "--quick");

// It says once per process that it will want a newer Node, which does not matter here.
process.env["AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED"] = "true";
setTimeout(() => {
  console.error(`The benchmark did not end within ${WATCHDOG_MS / 1000} s.`);
  process.exit(1);
}, WATCHDOG_MS).unref();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

console.log(
  `Node ${process.versions.node}, ${availableParallelism()} cores, ${quick ? "a quick run: it shows that the benchmark works, and its numbers say nothing" : "full run"}\n`,
);
if (isWanted("memory"))
  printVerdicts(
    "Quotas in memory",
    await measureMemory(
      quick
        ? { rounds: 1, turnMs: 10, processes: 1, manyKeys: 1000 }
        : { rounds: 9, turnMs: 60, warmUpMs: 500, processes: 8, manyKeys: 100_000 },
    ),
  );
if (isWanted("dynamodb"))
  await measureDynamo({
    mayInstall: !quick,
    ...(quick
      ? { rounds: 1, turnMs: 10, warmUp: 16, billed: 32 }
      : { rounds: 7, turnMs: 400, warmUp: 256, warmUpMs: 3000, billed: 512 }),
    ...(quick
      ? { calls: 16, manyEntities: 16, fewEntities: 2 }
      : { calls: 64, manyEntities: 1000, fewEntities: 8 }),
  });
