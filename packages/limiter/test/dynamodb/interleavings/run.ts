import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";
import { expectNoOrphans, mergeInTheEnd } from "./calm-end.ts";
import { takeWhatIsLeft } from "./remaining-tokens.ts";
import { shrink } from "../../support/seeded/shrink.ts";
import { withoutStackTraces } from "../../support/seeded/without-stack-traces.ts";
import { makeScenario, simplerScenarios, type Scenario } from "./scenario.ts";
import { play } from "./schedule.ts";
import { newCoverage, type Coverage } from "./coverage.ts";
import { World } from "./world.ts";

/** The table that the seeds use one after another. */
export interface SharedTable {
  readonly transport: DynamoTransport;
  readonly tableName: string;
}

/** The same, for seeds that take the transports in turn. */
export interface SharedTables {
  readonly transports: readonly DynamoTransport[];
  readonly tableName: string;
}

/**
 * Simpler scenarios that are tried for one failure: each takes a fraction of a second. A mutation
 * wants to know only that there is a failure, and sets it to 0.
 */
const MOST_REPLAYS = Number(process.env["REPLAYS"] ?? 60);

/** Lines of a failure's story that are shown: the last ones say most. */
const MOST_LINES = 60;

/**
 * Runs seeds one after another. Throws with the story of the first that fails, as short as it could
 * be made.
 */
export async function runSeeds(
  { transports, tableName }: SharedTables,
  seeds: readonly number[],
): Promise<Coverage> {
  const coverage = newCoverage();
  await withoutStackTraces(async () => {
    for (const seed of seeds) {
      const table = { transport: transports[seed % transports.length]!, tableName };
      const scenario = makeScenario(seed);
      const failure = await classifyError(table, scenario, coverage);
      if (failure !== undefined)
        throw new Error(await explain(table, scenario), { cause: failure.error });
    }
  });
  return coverage;
}

interface Failure {
  readonly error: unknown;
  readonly trace: readonly string[];
}

async function classifyError(
  table: SharedTable,
  scenario: Scenario,
  coverage: Coverage,
): Promise<Failure | undefined> {
  const world = new World({ ...table, scenario, coverage });
  try {
    await play(world);
    await expectNoOrphans(world);
    if (scenario.endsMerged) await mergeInTheEnd(world);
    world.compareLedger();
    await takeWhatIsLeft(world);
    return undefined;
  } catch (error) {
    return { error, trace: world.trace };
  } finally {
    for (const client of world.clients) {
      client.isAlive = false;
      client.gate.shut();
    }
    await world.table.clear();
  }
}

async function explain(table: SharedTable, scenario: Scenario): Promise<string> {
  const simplest = await shrink(scenario, simplerScenarios(scenario), {
    stillFails: async (simpler) =>
      (await classifyError(table, simpler, newCoverage())) !== undefined,
    mostReplays: MOST_REPLAYS,
  });
  const failure = (await classifyError(table, simplest, newCoverage()))!;
  const { limits, ...rest } = simplest;
  return [
    `Seed ${scenario.seed} fails (again: SEED=${scenario.seed} SEEDS=1). The simplest scenario of it that fails:`,
    JSON.stringify({ ...rest, limits: Object.fromEntries(limits) }),
    ...failure.trace.slice(-MOST_LINES),
    failure.error instanceof Error ? failure.error.message : String(failure.error),
  ].join("\n");
}
