import { cpuRatio, judge, printTable, type Pace } from "../harness.ts";
import { BillMeter } from "../dynamodb/bill.ts";
import { cases, type CaseSizes } from "../dynamodb/cases.ts";
import { compare, perCpuSecond, type Outcome } from "../dynamodb/comparison.ts";
import type { Contestant, ContestantId } from "../dynamodb/contestants/contestant.ts";
import { original } from "../dynamodb/contestants/original.ts";
import { ours, type OursOptions } from "../dynamodb/contestants/ours.ts";
import { startEngine } from "../dynamodb/engine.ts";
import { openLeanTransport, openSdkClient } from "../dynamodb/transports.ts";
import { toQuota } from "./memory-contestants.ts";

/** How long it is measured, and on what. */
export interface DynamoPace extends Pace, CaseSizes {
  /** Operations whose bill is looked at. */
  readonly billed: number;
  readonly mayInstall: boolean;
}

type Outcomes = ReadonlyMap<ContestantId, Outcome>;

const CASES = new Set(["sequential", "hot", "many"]);

/** What every transport should reach. */
const GOALS = [
  { transport: "lean", timesTheOriginal: 8 },
  { transport: "sdk", timesTheOriginal: 2 },
] as const;

/** Measures quotas against rates, and against those of the original. */
export async function measureDynamo(pace: DynamoPace): Promise<void> {
  const engine = await startEngine();
  const client = openSdkClient(engine);
  const lean = await openLeanTransport(engine);
  const contestants: Contestant[] = [];
  try {
    const meter = new BillMeter();
    meter.watch(client);
    contestants.push(
      ...(await openBoth("sdk", { meter, connection: { client } })),
      ...(await openBoth("lean", { meter, connection: { transport: meter.wrap(lean) } })),
    );
    const python = await original(engine.endpointUrl, {
      mayInstall: pace.mayInstall,
      quotas: true,
    });
    if ("missing" in python) console.log(`!!! SKIPPED !!! the original: ${python.missing}\n`);
    else contestants.push({ ...python, name: `${python.name}, quotas` });
    const rows = [];
    for (const race of cases(pace).filter(({ id }) => CASES.has(id)))
      rows.push(
        ...judgeCase(race.title, await compare(race, contestants, { pace, billed: pace.billed })),
      );
    printTable(["Quotas, a call of two", "goal", "measured", "verdict", "per CPU second"], rows);
  } finally {
    for (const contestant of contestants) await contestant.close();
    lean.close();
    client.destroy();
    await engine.stop();
  }
}

/** Rates and quotas on one transport. */
async function openBoth(
  transport: "sdk" | "lean",
  options: Pick<OursOptions, "meter" | "connection">,
): Promise<readonly Contestant[]> {
  const limits = ["rpm", "tpm"].map(toQuota);
  return [
    await ours({
      ...options,
      id: `ours-${transport}`,
      name: `rates, ${transport}`,
      stack: `bench-rates-${transport}`,
      shareRequests: true,
    }),
    await ours({
      ...options,
      id: `quotas-${transport}`,
      name: `quotas, ${transport}`,
      stack: `bench-quotas-${transport}`,
      shareRequests: true,
      limits,
    }),
  ];
}

function judgeCase(title: string, outcomes: Outcomes): readonly (readonly string[])[] {
  return GOALS.flatMap(({ transport, timesTheOriginal }) => {
    const [quotas, rates] = [
      outcomes.get(`quotas-${transport}`)!,
      outcomes.get(`ours-${transport}`)!,
    ];
    const theirs = outcomes.get("original");
    const what = `${title}, ${transport}`;
    return [
      [
        `${what}: CPU, quotas : rates`,
        ...judge(cpuRatio(quotas.measured, rates.measured), { atMost: 1.1 }),
        tellSpeeds(quotas, rates),
      ],
      [
        `${what}: requests, quotas : rates`,
        ...judge(quotas.bill.requests / rates.bill.requests, { atMost: 1 }),
        "",
      ],
      theirs === undefined
        ? [`${what}: acquires, quotas : the original`, "", "–", "NOT MEASURED", ""]
        : [
            `${what}: acquires, quotas : the original`,
            ...judge(cpuRatio(theirs.measured, quotas.measured), { atLeast: timesTheOriginal }),
            tellSpeeds(quotas, theirs),
          ],
    ];
  });
}

function tellSpeeds({ measured }: Outcome, theirs: Outcome): string {
  return `${perCpuSecond(measured)} : ${perCpuSecond(theirs.measured)}`;
}
