import type { DynamoTransport } from "../../src/repository/dynamodb/transport.ts";
import { takeWhatIsLeft } from "./remaining-tokens.ts";
import { makeScenario, simplerThan, type Scenario } from "./scenario.ts";
import { play } from "./schedule.ts";
import { newSituations, type Situations } from "./situations.ts";
import { World } from "./world.ts";

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

/** Lines of a failure's story that are shown: the last ones tell most. */
const MOST_LINES = 60;

/**
 * Runs seeds one after another. Throws with the story of the first that fails, as short as it could
 * be made.
 */
export async function runSeeds(
  { transports, tableName }: SharedTables,
  seeds: readonly number[],
): Promise<Situations> {
  const situations = newSituations();
  // Lost requests are thrown by the thousand here, and a stack trace costs more than the rest of
  // such an event.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    for (const seed of seeds) {
      const table = { transport: transports[seed % transports.length]!, tableName };
      const scenario = makeScenario(seed);
      const failure = await failureOf(table, scenario, situations);
      if (failure !== undefined)
        throw new Error(await explain(table, scenario), { cause: failure.error });
    }
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
  return situations;
}

interface Failure {
  readonly error: unknown;
  readonly trace: readonly string[];
}

async function failureOf(
  table: SharedTable,
  scenario: Scenario,
  situations: Situations,
): Promise<Failure | undefined> {
  const world = new World({ ...table, scenario, situations });
  try {
    await play(world);
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
  let simplest = scenario;
  let replays = 0;
  for (let isSimpler = true; isSimpler && replays < MOST_REPLAYS;) {
    isSimpler = false;
    for (const simpler of simplerThan(simplest)) {
      if (isSimpler || (replays += 1) > MOST_REPLAYS) break;
      if ((await failureOf(table, simpler, newSituations())) === undefined) continue;
      simplest = simpler;
      isSimpler = true;
    }
  }
  const failure = (await failureOf(table, simplest, newSituations()))!;
  const { limits, ...rest } = simplest;
  return [
    `Seed ${scenario.seed} fails (again: SEED=${scenario.seed} SEEDS=1). The simplest scenario of it that fails:`,
    JSON.stringify({ ...rest, limits: Object.fromEntries(limits) }),
    ...failure.trace.slice(-MOST_LINES),
    failure.error instanceof Error ? failure.error.message : String(failure.error),
  ].join("\n");
}
