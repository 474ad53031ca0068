/*
 * The strict promise, through real servers: two processes with Express, Fastify, Hono and node:http
 * on one SQLite file, and clients on sockets. Times are those that the servers read after a grant,
 * and are compared with the earliest that the limit allows, so a late observation hides nothing
 * and makes nothing fail.
 */
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { ClientRequest, IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { Limit } from "zae-limiter";
import { SqliteRepository } from "zae-limiter/sqlite";
import { open } from "../client.ts";
import { FRAMEWORKS, type Framework, type Moment, type Order, type Seen } from "./server.ts";

/** Starting two processes takes a while on a busy machine. */
const TIMEOUT_MS = 30_000;

/** One server process: its ports by framework. */
interface Server {
  readonly child: ChildProcess;
  readonly ports: Readonly<Record<Framework, number>>;
}

let folder: string;
let repository: SqliteRepository;
let servers: readonly Server[];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "zae-limiter-http-"));
  const path = join(folder, "limits.db");
  repository = await SqliteRepository.open(path);
  servers = await Promise.all([path, path].map(startServer));
}, TIMEOUT_MS);

afterAll(async () => {
  for (const { child } of servers ?? []) {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  await repository?.close();
  rmSync(folder, { recursive: true, force: true });
}, TIMEOUT_MS);

it.each(["express", "hono"] as const)(
  "%s: of 500 requests at once, exactly the 100 of the limit run, in two processes together",
  { timeout: TIMEOUT_MS },
  async (framework) => {
    const entity = `crowd-${framework}`;
    await repository.setLimits(entity, [Limit.perDay("tokens", 100)]);
    const answers = await Promise.all(
      Array.from({ length: 500 }, (_, index) =>
        readStatus(send(servers[index % 2]!, framework, { entity, name: `${entity}-${index}` })),
      ),
    );
    expect(answers.filter((status) => status === 200)).toHaveLength(100);
    expect(answers.filter((status) => status === 429)).toHaveLength(400);
    const ran = (await Promise.all(servers.map(see))).map((seen) => ofEntity(entity, seen.ran));
    expect(ran.flat()).toHaveLength(100);
    expect(await readStored(entity)).toEqual({ consumed: 100, requests: 100 });
  },
);

it.each(["express", "fastify"] as const)(
  "%s: all who wait run, in each process in their order of arrival, and none early",
  { timeout: TIMEOUT_MS },
  async (framework) => {
    const entity = `queue-${framework}`;
    const limit = { burst: 20, perSecond: 100 };
    await repository.setLimits(entity, [
      Limit.perSecond("tokens", limit.perSecond, { burst: limit.burst }),
    ]);
    const count = 120;
    const answers = await Promise.all(
      Array.from({ length: count }, (_, index) =>
        readStatus(
          send(servers[index % 2]!, framework, {
            entity,
            name: `${entity}-${index}`,
            path: "/wait",
          }),
        ),
      ),
    );
    expect(new Set(answers)).toEqual(new Set([200]));
    const seen = await Promise.all(servers.map(see));
    for (const { arrived, ran } of seen)
      expect(listNames(ofEntity(entity, ran))).toEqual(listNames(ofEntity(entity, arrived)));
    const ran = seen.flatMap((one) => ofEntity(entity, one.ran));
    expect(ran).toHaveLength(count);
    const beganMs = Math.min(...seen.flatMap((one) => listTimes(ofEntity(entity, one.arrived))));
    expect(tooEarly(listTimes(ran), beganMs, limit)).toEqual([]);
    expect(await readStored(entity)).toEqual({ consumed: count, requests: count });
  },
);

it.each(FRAMEWORKS)(
  "%s: who hangs up while waiting leaves the queue and is charged nothing",
  { timeout: TIMEOUT_MS },
  async (framework) => {
    const [server] = servers;
    const entity = `patience-${framework}`;
    const named = (name: string): string => `${entity}-${name}`;
    await repository.setLimits(entity, [Limit.perDay("tokens", 10)]);
    const holder = readStatus(
      send(server!, framework, {
        entity,
        name: named("holder"),
        cost: 10,
        hold: "yes",
        end: "give-back",
      }),
    );
    await until(server!, ({ ran }) => listNames(ran).includes(named("holder")));
    const waiting: ClientRequest[] = [];
    for (let index = 0; index < 20; index += 1) {
      const name = named(String(index));
      waiting.push(send(server!, framework, { entity, name, path: "/wait" }));
      // One after the other, so that everybody knows who came first.
      await until(server!, ({ arrived }) => listNames(arrived).includes(name));
    }
    const staying = waiting.filter((_, index) => index % 2 === 1).map(readStatus);
    const leaving = waiting.filter((_, index) => index % 2 === 0);
    for (const client of leaving) client.on("error", () => {}).destroy();
    await until(server!, ({ closed }) => ofNames(closed, entity).length === leaving.length);
    server!.child.send("let-go" satisfies Order);
    expect(await holder).toBe(200);
    expect(new Set(await Promise.all(staying))).toEqual(new Set([200]));
    const { ran } = await see(server!);
    expect(listNames(ofEntity(entity, ran))).toEqual([
      named("holder"),
      ...Array.from({ length: 10 }, (_, index) => named(String(2 * index + 1))),
    ]);
    expect(await readStored(entity)).toEqual({ consumed: 10, requests: 10 });
  },
);

/**
 * An independent count of what a limit allows: at most the burst and what was earned since the
 * first request arrived. Both times err to the side that allows more. Returns who came too early.
 */
function tooEarly(
  timesMs: readonly number[],
  beganMs: number,
  { burst, perSecond }: { readonly burst: number; readonly perSecond: number },
): readonly string[] {
  return timesMs
    .toSorted((left, right) => left - right)
    .map((atMs, index) => ({ count: index + 1, elapsedMs: atMs - beganMs }))
    .filter(({ count, elapsedMs }) => count * 1000 > burst * 1000 + elapsedMs * perSecond)
    .map(({ count, elapsedMs }) => `${count} after ${elapsedMs} ms`);
}

async function startServer(path: string): Promise<Server> {
  const script = fileURLToPath(new URL("./dist/server.js", import.meta.url));
  const child = fork(script, [path], { env: { ...process.env, NODE_NO_WARNINGS: "1" } });
  const [ports] = (await once(child, "message")) as [Server["ports"]];
  return { child, ports };
}

interface Sent {
  readonly entity: string;
  readonly name: string;
  readonly path?: "/now" | "/wait";
  readonly cost?: number;
  readonly hold?: "yes";
  readonly end?: "give-back";
}

/** Sends a request on a connection of its own. */
function send(
  { ports }: Server,
  framework: Framework,
  { entity, name, path = "/now", cost = 1, hold, end }: Sent,
): ClientRequest {
  const headers = {
    "x-entity": entity,
    "x-name": name,
    "x-cost": String(cost),
    ...(hold !== undefined && { "x-hold": hold }),
    ...(end !== undefined && { "x-end": end }),
  };
  return open({ port: ports[framework], path, headers });
}

async function readStatus(client: ClientRequest): Promise<number | undefined> {
  const [response] = (await once(client, "response")) as [IncomingMessage];
  response.resume();
  await once(response, "end");
  return response.statusCode;
}

async function see({ child }: Server): Promise<Seen> {
  child.send("see" satisfies Order);
  const [seen] = (await once(child, "message")) as [Seen];
  return seen;
}

async function until(server: Server, holds: (seen: Seen) => boolean): Promise<void> {
  await vi.waitFor(
    async () => {
      if (!holds(await see(server))) throw new Error("It did not happen.");
    },
    { interval: 1, timeout: TIMEOUT_MS },
  );
}

async function readStored(entityId: string): Promise<{ consumed: number; requests: number }> {
  const [bucket] = await repository.getBuckets(entityId);
  const { requests } = await repository.getUsageSummary({ entityId });
  return { consumed: bucket!.totalConsumedMilli / 1000, requests };
}

function ofEntity(entity: string, moments: readonly Moment[]): readonly Moment[] {
  return moments.filter(({ name }) => name.startsWith(`${entity}-`));
}

function ofNames(names: readonly string[], entity: string): readonly string[] {
  return names.filter((name) => name.startsWith(`${entity}-`));
}

function listNames(moments: readonly Moment[]): readonly string[] {
  return moments.map(({ name }) => name);
}

function listTimes(moments: readonly Moment[]): readonly number[] {
  return moments.map(({ atMs }) => atMs);
}
