import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import {
  renderScript,
  SCENARIOS,
  verifyLedger,
  ZaeLimiterEngine,
  type EngineOptions,
  type Step,
  type UserContext,
} from "artillery-engine-zae-limiter";
import { hearMetrics, temporaryFolder, type HeardEmitter } from "../../test/support/load.ts";

/** Fills in what is exactly one variable, as Artillery does. */
function template(value: unknown, context: UserContext): unknown {
  if (typeof value === "string") {
    const name = /^\{\{ (\w+) \}\}$/.exec(value)?.[1];
    return name === undefined ? value : context.vars[name];
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, template(each, context)]),
  );
}

interface Run {
  readonly heard: HeardEmitter;
  readonly errors: readonly unknown[];
}

/** Runs users at once, as Artillery would in one worker. */
async function runUsers(
  flows: readonly (readonly Step[])[],
  {
    count = 1,
    target = "memory:",
    options = {},
    processor = {},
    vars = {},
  }: {
    readonly count?: number;
    readonly target?: string;
    readonly options?: EngineOptions;
    readonly processor?: Readonly<Record<string, unknown>>;
    readonly vars?: Record<string, unknown>;
  } = {},
): Promise<Run> {
  const heard = hearMetrics();
  const engines = { "zae-limiter": options };
  const scenarios = flows.map((flow) => ({ engine: "zae-limiter", flow }));
  const script = { config: { target, engines, processor, variables: vars }, scenarios };
  const engine = new ZaeLimiterEngine(script, heard, { template });
  await engine.init();
  const users = flows.map((flow) => engine.createScenario({ flow }, heard));
  const errors = await Promise.all(
    Array.from(
      { length: count },
      (_, index) =>
        new Promise<unknown>((resolve) => {
          users[index % users.length]!({ vars: { ...vars } }, resolve);
        }),
    ),
  );
  await engine.close();
  return { heard, errors: errors.filter((error) => error !== null) };
}

function renderSimple(): ReturnType<typeof renderScript> {
  return renderScript("simple", { target: "memory:", rate: 7 });
}

/** Keeps the event loop from turning. */
function block(): void {
  for (const end = performance.now() + 60; performance.now() < end;);
}

const setup = [{ setSystemDefaults: ["rpm:10/min", "tpm:1000/min"] }];

describe("the scenarios", () => {
  it.each(Object.keys(SCENARIOS))("%s runs without errors, and its ledger holds", async (name) => {
    const ledger = temporaryFolder();
    const target = `sqlite:${join(temporaryFolder(), "limits.db")}`;
    const script = renderScript(name, { target, durationSeconds: 1, rate: 30, users: 30 });
    // It goes to Artillery as JSON.
    expect(JSON.parse(JSON.stringify(script))).toEqual(script);
    const { engines, processor, variables } = script.config;
    const { heard, errors } = await runUsers(
      script.scenarios.map(({ flow }) => flow),
      {
        count: 60,
        target,
        options: { ...engines["zae-limiter"], ledger },
        processor: (await import(processor)) as Readonly<Record<string, unknown>>,
        vars: { ...variables, durationSeconds: 0.05 },
      },
    );
    expect(errors).toEqual([]);
    expect(heard.count("zae.acquire.count")).toBeGreaterThan(0);
    const { openRepository } = await import("zae-limiter/open");
    await using repository = await openRepository(target);
    const report = await verifyLedger(ledger, repository);
    expect(report.problems).toEqual([]);
    expect(report.grants).toBe(heard.count("zae.acquire.count"));
    expect(report.notes.filter((note) => note.startsWith("Usage"))).toEqual([]);
  });

  it("take the load that is asked for, in a namespace of their own", () => {
    const { phases, engines, variables } = renderSimple().config;
    expect(phases).toEqual([{ duration: 30, arrivalRate: 7 }]);
    expect(variables).toMatchObject({ users: 20 });
    expect(engines).not.toEqual(renderSimple().config.engines);
  });

  it.each([
    [{ name: "llm-gatway" }, "did you mean llm-gateway?"],
    [{ name: "constructor" }, "is not known"],
    [{ rate: 0 }, "Invalid rate"],
    [{ users: 1.5 }, "Invalid users"],
    [{ durationSeconds: 1e9 }, "Invalid durationSeconds"],
    [{ target: "" }, "Invalid target"],
  ])("are refused with %o", (wrong: object, message) => {
    const { name = "simple", ...options } = wrong as { readonly name?: string };
    expect(() => renderScript(name, { target: "memory:", ...options })).toThrow(message);
  });
});

describe("steps", () => {
  it("make calls with what is filled in", async () => {
    const flow = [
      { createEntity: { entity: "parent" } },
      { createEntity: { entity: "{{ key }}", parent: "parent", cascade: true } },
      { setLimits: { entity: "parent", limits: ["rpm:100/min"], resource: "gpt-4" } },
      {
        acquire: {
          entity: "{{ key }}",
          resource: "gpt-4",
          consume: { rpm: "{{ amount }}", tpm: 100 },
          settle: { tpm: 150 },
          workMs: 1,
          name: "chat",
        },
      },
      { available: { entity: "{{ key }}", resource: "gpt-4" } },
      { think: 0.001 },
      { loop: [{ function: "note" }], count: 3 },
    ];
    const note = vi.fn();
    const vars = { key: "key-1", amount: 2 };
    const { heard, errors } = await runUsers([flow], {
      options: { setup },
      processor: { note },
      vars,
    });
    expect(errors).toEqual([]);
    expect(note).toHaveBeenCalledTimes(3);
    expect(note.mock.lastCall).toMatchObject([{ repository: {} }, { vars }]);
    for (const kind of ["acquire", "commit", "available", "set_limits"])
      expect(heard.count(`zae.${kind}.count`), kind).toBe(1);
    expect(heard.count("zae.create_entity.count")).toBe(2);
    expect(heard.count("zae.commit_of.chat.count")).toBe(1);
    expect(heard.events[0]).toEqual(["started"]);
  });

  it.each([
    [{ aquire: {} }, "did you mean acquire?"],
    [{ acquire: { who: "x" } }, "known are entity, resource"],
    [{ acquire: { resorce: "x" } }, "did you mean resource?"],
    [{ acquire: "key-1" }, "must be an object of options"],
    [{ function: "nothing" }, "is not known"],
    [{ loop: [{ thnk: 1 }], count: 1 }, "did you mean think?"],
    [{ loop: [], count: 1, forSeconds: 1 }, "needs a count or forSeconds"],
    [{ think: 1, acquire: {} }, "must have one name"],
  ])("%o is refused before any user starts", async (step, message) => {
    await expect(runUsers([[step as Step]])).rejects.toThrow(message);
  });

  it("that fail end the user with the error, which is reported under its code", async () => {
    const flow = [{ acquire: { entity: "", resource: "api", consume: { rpm: 1 } } }];
    const { heard, errors } = await runUsers([flow], { options: { setup } });
    expect(errors).toHaveLength(1);
    expect(heard.events).toContainEqual(["error", "ERR_LIMITER_INVALID_IDENTIFIER"]);
  });

  it("loops give way to timers, all of them together", async () => {
    let nowMs = 0;
    const turns: number[] = [];
    const clock = vi.spyOn(performance, "now").mockImplementation(() => nowMs);
    onTestFinished(() => clock.mockRestore());
    const work = (): void => void (nowMs += 0.1);
    const note = (): void => {
      turns.push(nowMs);
      if (nowMs < 1000) setImmediate(note);
    };
    note();
    const flow = [{ loop: [{ function: "work" }], forSeconds: 1 }];
    await runUsers([flow], { count: 64, processor: { work } });
    const lengths = turns.slice(1).map((at, index) => at - turns[index]!);
    // 2 ms, and what each loop finishes. A turn for each loop would make it 128 ms.
    expect(Math.max(...lengths)).toBeLessThan(20);
  });
});

describe("the engine", () => {
  it("takes target and ledger from the environment, where they are set", async () => {
    const folder = temporaryFolder();
    vi.stubEnv("ZAEL_LOADTEST_TARGET", "memory:");
    vi.stubEnv("ZAEL_LOADTEST_LEDGER", folder);
    onTestFinished(() => void vi.unstubAllEnvs());
    const flow = [{ acquire: { entity: "key-1", resource: "api", consume: { rpm: 1 } } }];
    await runUsers([flow], { target: "sqlite:", options: { setup, ledger: "nowhere" } });
    expect(readdirSync(folder)).toHaveLength(1);
  });

  it.each([
    [{ options: { legder: "x" } as EngineOptions }, "did you mean ledger?"],
    [{ target: "redis:" }, "must begin with one of"],
    [{ options: { setup: [{ setLimit: {} }] } }, "did you mean setLimits?"],
  ])("is refused with %o", async (wrong, message) => {
    await expect(runUsers([[]], wrong)).rejects.toThrow(message);
  });

  it("reports how late its event loop is", async () => {
    const flow = [{ loop: [{ function: "block" }, { think: 0.01 }], forSeconds: 1.3 }];
    const { heard } = await runUsers([flow], { processor: { block } });
    const lag = heard.events.find(([, name]) => name === "zae.generator.lag_us");
    expect(lag?.[2]).toBeGreaterThan(20_000);
  });

  it("has an init that Artillery awaits, and is the default export", async () => {
    const module = await import("artillery-engine-zae-limiter");
    expect(module.default).toBe(ZaeLimiterEngine);
    expect(ZaeLimiterEngine.prototype.init.constructor.name).toBe("AsyncFunction");
  });
});
