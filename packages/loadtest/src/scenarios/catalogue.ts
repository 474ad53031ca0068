import { fileURLToPath } from "node:url";
import { ValidationError } from "zae-limiter";
import type { Script } from "../engine/artillery.ts";
import { buildUnknownNameError } from "../engine/nearest.ts";
import { checkWhole, constant } from "../load/shapes.ts";
import { hotParent, maxRps, maxRpsCascade, simple, simpleCascade } from "./calls.ts";
import { llmGateway, llmProduction } from "./llm.ts";
import type { LoadParameters, Scenario } from "./scenario.ts";
import { stress } from "./stress.ts";
import { abandonedStreams, coldStart, configChurn, retryStorm } from "./troubles.ts";

/** The scenarios of the package, by name. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  simple,
  "simple-cascade": simpleCascade,
  "max-rps": maxRps,
  "max-rps-cascade": maxRpsCascade,
  "llm-gateway": llmGateway,
  "llm-production": llmProduction,
  stress,
  "hot-parent": hotParent,
  "retry-storm": retryStorm,
  "abandoned-streams": abandonedStreams,
  "config-churn": configChurn,
  "cold-start": coldStart,
};

/** Entities of one run: each is looked up by its index. */
const MOST_USERS = 10_000_000;

/**
 * The script of a scenario for Artillery. What is left out is as the scenario suggests. Every
 * script has a namespace of its own, so that a run neither changes nor meets other data.
 *
 * @example
 * const script = renderScript("stress", { target: "sqlite:./limits.db", rate: 200 });
 * writeFileSync("stress.json", JSON.stringify(script));
 */
export function renderScript(
  name: string,
  {
    target,
    namespace = buildRunNamespace(),
    ...load
  }: LoadOptions & {
    /** The URL of the repository. */
    readonly target: string;
    /** The namespace of the run. @default a new one */
    readonly namespace?: string;
  },
): Script {
  const scenario = findScenario(name);
  const parameters = { ...scenario.defaults, ...withoutUndefined(load) };
  checkWhole("users", parameters.users, MOST_USERS);
  if (typeof target !== "string" || target === "")
    throw new ValidationError("target", target, "must be the URL of a repository");
  // Checks the duration and the rate, too.
  const steady = constant(parameters);
  return {
    config: {
      target,
      engines: { "zae-limiter": { namespace, setup: scenario.setup } },
      processor: fileURLToPath(scenario.file),
      phases: scenario.buildPhases?.(parameters) ?? steady,
      variables: { ...scenario.variables, ...parameters },
    },
    scenarios: scenario.users.map((user) => Object.assign({ engine: "zae-limiter" }, user)),
  };
}

/** The scenario of a name; an unknown one is refused with the nearest. */
function findScenario(name: string): Scenario {
  const scenario = Object.hasOwn(SCENARIOS, name) ? SCENARIOS[name] : undefined;
  if (scenario === undefined) throw buildUnknownNameError("scenario", name, Object.keys(SCENARIOS));
  return scenario;
}

/** Runs may begin at the same moment. */
function buildRunNamespace(): string {
  const suffix = Math.floor(Math.random() * 36 ** 4).toString(36);
  return `loadtest-${Date.now().toString(36)}-${suffix}`;
}

/** Options of a command line that were not given are undefined. */
type LoadOptions = { readonly [Name in keyof LoadParameters]?: LoadParameters[Name] | undefined };

function withoutUndefined(load: LoadOptions): Partial<LoadParameters> {
  return Object.fromEntries(Object.entries(load).filter(([, value]) => value !== undefined));
}
