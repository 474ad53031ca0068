import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { parseArgs } from "node:util";
import type { Place } from "./transports.ts";

/** The cases of all contestants, in this order. */
const CASES = ["sequential", "hot", "many", "children", "cascade", "refusals"] as const;
/** What there is to run: the cases, then the rest. */
const PARTS = [...CASES, "alone", "arrivals", "processes"] as const;
/** Who ours can be compared with. */
const RIVALS = ["floor", "peer", "original"] as const;
const TRANSPORTS = ["sdk", "lean"] as const;

export type Part = (typeof PARTS)[number];
export type Rival = (typeof RIVALS)[number];
export type TransportName = (typeof TRANSPORTS)[number];

/** What the command line asked for; all of it by default. */
export interface Selection {
  readonly quick: boolean;
  readonly parts: ReadonlySet<Part>;
  readonly against: ReadonlySet<Rival>;
  readonly on: ReadonlySet<TransportName>;
  /** Measures this library alone, on a table. */
  readonly table?: TableOptions;
}

/** The table to measure, and what becomes of the result. */
export interface TableOptions extends Place {
  readonly name: string;
  /** Creates the table, which must not exist, and deletes it afterwards. */
  readonly create: boolean;
  /** For how long each case runs. */
  readonly seconds: number;
  /** The file that gets the result as JSON. */
  readonly json?: string | undefined;
}

const DEFAULT_SECONDS = 10;
const MOST_SECONDS = 60;

const TABLE_OPTIONS = ["region", "endpoint", "create", "seconds", "json"] as const;

/** Reads the command line, or throws a sentence that says what it may contain. */
export function readSelection(args: readonly string[]): Selection {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string" },
      against: { type: "string" },
      on: { type: "string", default: TRANSPORTS.join() },
      table: { type: "string" },
      region: { type: "string" },
      endpoint: { type: "string" },
      create: { type: "boolean" },
      seconds: { type: "string" },
      json: { type: "string" },
    },
  });
  const { quick, only, against, table } = values;
  const parts = table === undefined ? PARTS : CASES;
  const selection = {
    quick,
    parts: parseNames("--only", only ?? parts.join(), parts),
    against: parseNames("--against", against ?? RIVALS.join(), RIVALS),
    on: parseNames("--on", values.on, TRANSPORTS),
  };
  if (table === undefined) {
    const stray = TABLE_OPTIONS.find((name) => values[name] !== undefined);
    if (stray !== undefined)
      throw new Error(`--${stray} needs --table: without it, the benchmark starts an engine.`);
    return selection;
  }
  if (against !== undefined)
    throw new Error("--against does not go with --table, where only this library is measured.");
  return {
    ...selection,
    table: {
      name: table,
      region: values.region,
      endpointUrl: parseUrl(values.endpoint),
      create: values.create ?? false,
      seconds: parseSeconds(values.seconds, quick ? 0.1 : DEFAULT_SECONDS),
      json: parsePath(values.json),
    },
  };
}

function parseUrl(text: string | undefined): string | undefined {
  if (text !== undefined && !/^https?:\/\/[^/]/.test(text))
    throw new Error(`--endpoint takes an address such as http://127.0.0.1:8000, not "${text}".`);
  return text;
}

function parseSeconds(text: string | undefined, byDefault: number): number {
  const seconds = text === undefined ? byDefault : Number(text);
  if (!(seconds > 0 && seconds <= MOST_SECONDS))
    throw new Error(`--seconds takes a number from 0.1 to ${MOST_SECONDS}, not "${text}".`);
  return seconds;
}

function parsePath(text: string | undefined): string | undefined {
  if (text !== undefined && !existsSync(dirname(resolve(text))))
    throw new Error(`--json names a file in a folder that does not exist: ${text}`);
  return text;
}

function parseNames<Name extends string>(
  option: string,
  text: string,
  known: readonly Name[],
): ReadonlySet<Name> {
  const names = text.split(",");
  const unknown = names.filter((name) => !known.some((other) => other === name));
  if (unknown.length > 0)
    throw new Error(
      `${option} does not know "${unknown.join('", "')}". It takes a list of: ${known.join(", ")}.`,
    );
  return new Set(known.filter((name) => names.includes(name)));
}
