import { once } from "node:events";
import { rmSync, symlinkSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runAggregator } from "zae-limiter/aggregator";
import { openRepository } from "zae-limiter/open";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { describeUnlessMissing } from "../../limiter/test/support/engine.ts";
import { chosenEngine, whyMissing } from "../../limiter/test/support/engine-process.ts";
import { LocalFolder } from "../src/commands/local/system/local-folder.ts";
import { isRunning, type ProcessIdentity } from "../src/commands/local/system/process.ts";
import { zaeLimiter, type Outcome } from "./command-line.ts";
import { LocalSystems } from "./local-system.ts";

/** Where tools/dynamodb-local.mjs puts it. */
const DYNAMODB_LOCAL = fileURLToPath(
  new URL("../../../.cache/dynamodb-local-2.6.1", import.meta.url),
);

/** An engine that listened on every interface would listen on this one too. */
const OTHER_INTERFACE = "127.0.0.2";

async function expectOnlyHere(endpointUrl: string): Promise<void> {
  const socket = connect(Number(new URL(endpointUrl).port), OTHER_INTERFACE);
  await expect(once(socket, "connect")).rejects.toThrow("ECONNREFUSED");
}

const POLLING = { timeout: 60_000, interval: 20 };

describeUnlessMissing("a local system", whyMissing("dynoxide"), () => {
  let systems: LocalSystems;

  beforeEach(() => {
    systems = new LocalSystems();
  });

  afterEach(() => systems.clear(["zae-limiter", "other"]));

  /** `local up` in this process: what it came to, and how it is interrupted once it is ready. */
  async function up(line: string): Promise<{ outcome: Promise<Outcome>; interrupt: () => void }> {
    let interrupt: (() => void) | undefined;
    const outcome = zaeLimiter(`local up ${line}`, {
      env: systems.env,
      runAggregator,
      onListening: (act) => (interrupt = act),
    });
    let isOver = false;
    void outcome.finally(() => (isOver = true));
    const stack = / --stack (\S+)/.exec(line)?.[1];
    await vi.waitFor(async () => {
      const { phase } = await systems.status(stack);
      expect(isOver || phase === "running").toBe(true);
    }, POLLING);
    return { outcome, interrupt: () => interrupt?.() };
  }

  function findEngine(stack = "zae-limiter"): ProcessIdentity {
    const found = new LocalFolder(stack, systems.env).find();
    if (found.is === "absent") throw new Error("It was never started.");
    return found.state.engineProcess!;
  }

  it("runs until it is interrupted, and nothing is left of it", async () => {
    const { outcome, interrupt } = await up("--port 0");
    const { endpointUrl, repository } = await systems.status();
    expect(endpointUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    await expectOnlyHere(String(endpointUrl));
    const opened = await openRepository(String(repository), { create: false });
    expect((await opened.listNamespaces()).map(({ name }) => name)).toEqual(["default"]);
    await opened.close();
    const engine = findEngine();
    expect(isRunning(engine)).toBe(true);
    interrupt();
    expect(await outcome).toMatchObject({
      code: 0,
      stdout:
        `zae-limiter is ready at ${String(endpointUrl)} (dynoxide).\n` +
        "Data is in memory, and gone when it ends; --data FOLDER keeps it.\n" +
        'To use it in this shell: eval "$(zae-limiter local env)"\nTo end it: Ctrl-C\n',
    });
    expect(isRunning(engine)).toBe(false);
    expect(await systems.ask("local status")).toMatchObject({ code: 1 });
    expect(await systems.ask("local env")).toMatchObject({
      code: 1,
      stderr: "error: zae-limiter is not running. To start it: zae-limiter local up --detach\n",
    });
    expect((await systems.ask("local logs --tail 3")).stdout).toMatch(
      /^\S+ \S+ Interrupted\. .*\n.*engine: .*\n\S+ \S+ Ended\.\n$/,
    );
  });

  it("ends, and says why, when its engine is killed", async () => {
    const { outcome } = await up("--port 0");
    const followed = systems.ask("local logs --follow --tail 1");
    process.kill(findEngine().pid, "SIGKILL");
    const reason =
      "The engine ended (SIGKILL). Its data was in memory and is gone. " +
      "To start it again: zae-limiter local up";
    const { code, stderr } = await outcome;
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining(reason) });
    expect(await systems.status()).toMatchObject({ running: false, reason });
    expect((await followed).stdout).toMatch(/ Ready at .*\n.* The engine ended \(SIGKILL\)\..*\n$/);
  });

  it("says what failed, not that its engine ended, when its aggregator cannot start", async () => {
    const { code, stderr } = await zaeLimiter("local up --port 0", {
      env: systems.env,
      runAggregator: () => {
        throw new Error("the aggregator cannot start");
      },
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(/error: the aggregator cannot start\n$/);
  });

  it("ends when its folder is removed, because no command could end it then", async () => {
    const { outcome } = await up("--port 0");
    const engine = findEngine();
    rmSync(systems.env["ZAEL_LOCAL_FOLDER"]!, { recursive: true });
    expect(await outcome).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("was removed, so no command can find it any more."),
    });
    expect(isRunning(engine)).toBe(false);
  });

  it("goes on while its disk is full, and ends when it is asked to", async () => {
    const { outcome, interrupt } = await up("--port 0");
    const engine = findEngine();
    const { path, log } = new LocalFolder("zae-limiter", systems.env);
    try {
      rmSync(log);
      for (const file of [log, join(path, "pid.json.draft")]) symlinkSync("/dev/full", file);
      interrupt();
      expect((await outcome).code).toBe(0);
      expect(isRunning(engine)).toBe(false);
    } finally {
      rmSync(path, { recursive: true });
    }
  });

  it("a data folder is used by one of them at a time", async () => {
    const data = join(systems.folder, "data");
    const first = await systems.run(["local", "up", "--detach", "--port", "0", "--data", data]);
    expect(first.code).toBe(0);
    const second = await up(`--port 0 --stack other --data ${data}`);
    expect(await second.outcome).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        `The data folder ${data} is in use by the stack zae-limiter.`,
      ),
    });
    const engine = findEngine();
    expect((await systems.ask("local down")).stdout).toBe(
      `Ended zae-limiter. Its data is in ${data}.\n`,
    );
    expect(isRunning(engine)).toBe(false);
    expect((await systems.ask("local logs --tail 1")).stdout).toMatch(/ Ended\.\n$/);
    const third = await up(`--port 0 --stack other --data ${data}`);
    third.interrupt();
    expect((await third.outcome).code).toBe(0);
  });

  it("one that runs is not started again, and not taken for one with other options", async () => {
    const { outcome, interrupt } = await up("--port 0");
    expect(await systems.ask("local up --detach")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^zae-limiter is running already at http/),
    });
    for (const [options, difference] of [
      ["--port 1", "the address http://127.0.0.1:"],
      ["--data ./data", "data in memory"],
      ["--engine dynamodb-local", "the engine dynoxide"],
    ] as const)
      expect(await systems.ask(`local up ${options}`)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(`zae-limiter is running already, with ${difference}`),
      });
    interrupt();
    await outcome;
  });

  it("a start that fails says why and leaves nothing", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    const file = join(process.execPath, "data");
    for (const [line, reason] of [
      [`--port ${port}`, `Port ${port} is taken. Choose another with --port, or 0 for any.`],
      [`--port 0 --data ${file}`, `The data folder ${file} cannot be used: ENOTDIR`],
      ["--port 0 --jar /nowhere", "There is no DynamoDBLocal.jar at /nowhere."],
    ] as const) {
      const { outcome } = await up(line);
      const { code, stderr } = await outcome;
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(reason) });
      expect(await systems.status()).toMatchObject({ running: false });
    }
    // The same through a process in the background.
    const detached = await systems.run(["local", "up", "--detach", "--port", String(port)]);
    expect(detached).toEqual({
      code: 1,
      stdout: "",
      stderr: `error: Port ${port} is taken. Choose another with --port, or 0 for any.\n`,
    });
    taken.close();
  });

  // A JVM needs seconds, so it is started only where it was asked for.
  it.skipIf(chosenEngine() !== "dynamodb-local")(
    "runs on DynamoDB Local, on this machine only",
    { timeout: 120_000 },
    async () => {
      const { outcome, interrupt } = await up(`--port 0 --jar ${DYNAMODB_LOCAL}`);
      const { endpointUrl, engine } = await systems.status();
      expect(engine).toBe("dynamodb-local");
      await expectOnlyHere(String(endpointUrl));
      interrupt();
      expect((await outcome).code).toBe(0);
    },
  );

  it("of two starts in the background one wins, and a supervisor that dies is cleared up", async () => {
    const data = join(systems.folder, "data");
    const start = ["local", "up", "--detach", "--port", "0", "--data", data];
    const outcomes = await Promise.all([systems.run(start), systems.run(start)]);
    expect(outcomes.map(({ code, stderr }) => ({ code, stderr }))).toEqual([
      { code: 0, stderr: "" },
      { code: 0, stderr: "" },
    ]);
    const said = outcomes.map(({ stdout }) => stdout.split("\n")[0]!.replace(/ \(.*/, ""));
    const { endpointUrl, pid } = await systems.status();
    expect(said.toSorted()).toEqual([
      `zae-limiter is ready at ${String(endpointUrl)}`,
      `zae-limiter is running already at ${String(endpointUrl)}`,
    ]);

    const engine = findEngine();
    process.kill(Number(pid), "SIGKILL");
    const hasDied = `Its supervisor, process ${String(pid)}, has died.`;
    await vi.waitFor(
      async () =>
        expect(await systems.status()).toMatchObject({
          running: false,
          reason: expect.stringContaining(hasDied),
        }),
      POLLING,
    );
    expect(isRunning(engine)).toBe(true);
    const again = await up(`--port 0 --data ${data}`);
    expect(isRunning(engine)).toBe(false);
    // Both the stack and its data folder name the engine, which is ended once.
    const { stdout } = await systems.ask("local logs");
    expect(stdout.split(`Ending its engine, process ${engine.pid}.`)).toHaveLength(2);
    again.interrupt();
    expect((await again.outcome).stdout).toContain("zae-limiter is ready at");

    // And once more, but this time `local down` clears up.
    await systems.run(start);
    const left = findEngine();
    process.kill(Number((await systems.status())["pid"]), "SIGKILL");
    expect(await systems.ask("local down")).toMatchObject({ code: 0 });
    expect(isRunning(left)).toBe(false);
  });
});
