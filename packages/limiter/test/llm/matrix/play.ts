/* Plays the cells of the matrix with a real client, and reads their outcomes. */
import { setTimeout } from "node:timers/promises";
import { Limit, RateLimiter, type Repository } from "zae-limiter";
import { METERING, type Estimator } from "zae-limiter/llm";
import { MemoryRepository } from "zae-limiter/memory";
import { SqliteRepository } from "zae-limiter/sqlite";
import { ManualClock } from "zae-limiter/testing";
import type { Provider } from "../../../../../examples/local-provider/provider.ts";
import { collectGarbage } from "../../support/collect-garbage.ts";
import { ENDS, isLeft, isPlayed, isStream, KINDS, STORES } from "./cells.ts";
import type { Cell, Charge, End, Seen } from "./cells.ts";
import type { Call, Client } from "./client.ts";
import { Watch } from "./watch.ts";

/** The reservation of every call. It differs from all that the provider reports. */
export const RESERVED = { input: 40, output: 100 };

const ESTIMATOR: Estimator = {
  estimate: ({ maxOutputTokens }) => ({ ...RESERVED, ...(maxOutputTokens === 0 && { output: 0 }) }),
  tokensOf: (_call, textBytes) => textBytes,
};

const CAPACITY = 100_000;
const ENTITY = "key-1";
/** So short that nothing refills meanwhile. */
const IDLE_MS = 1;
/** Cells that are played at the same time. */
const TOGETHER = 16;
/** A call that has not ended after this time does not end by itself. */
const PATIENCE_MS = 10_000;
/** A client that has read nothing for this time reads nothing more by itself. */
const QUIET_MS = 50;
/** The text of three words, which is all that a slow stream has. */
const SLOW_TEXT = "A bucket holds ";

/** What the provider is asked to do. */
const WISHES: Partial<Record<End, Readonly<Record<string, string>>>> = {
  "no usage": { "x-local-fault": "no-usage" },
  "400": { "x-local-fault": "400" },
  "401": { "x-local-fault": "401" },
  "429": { "x-local-fault": "429" },
  "500": { "x-local-fault": "500" },
  "lost connection": { "x-local-fault": "no-answer" },
  "cut off": { "x-local-fault": "cut" },
  "ended early": { "x-local-fault": "end-early" },
  "error event": { "x-local-fault": "error-event" },
  "aborted before": { "x-local-fault": "hang" },
  "aborted during": { "x-local-fault": "slow" },
  retried: { "x-local-fault": "429 1" },
  "tool loop": { "x-local-tool-calls": "2" },
};

/**
 * The answer of a stream that is left. It is whole if the client reads on. It has three words, so
 * that the output is known, or is very long for clients that read ahead, as they would wait for the
 * fourth word.
 */
function wishesOfLeft(client: Client, end: End): Readonly<Record<string, string>> {
  if (client.readsOn === true) return {};
  const isLong = end === "never read" || client.readsAhead === true;
  return isLong ? { "x-local-answer": "2000" } : { "x-local-fault": "slow" };
}

/** All cells of a client. */
export function listCells(client: Client): readonly Cell[] {
  const cells = KINDS.flatMap((kind) =>
    ENDS.flatMap((end) => STORES.map((store) => ({ kind, end, store }))),
  );
  return cells.filter((cell) => isPlayed(client.name, cell));
}

/** Plays all cells of a client, several at a time. Returns their outcomes in order. */
export async function playAll(client: Client, provider: Provider): Promise<readonly Seen[]> {
  const clock = new ManualClock();
  const stores = {
    memory: new MemoryRepository({ clock }),
    sqlite: await SqliteRepository.open(":memory:", { clock }),
  };
  for (const repository of Object.values(stores))
    await repository.setSystemDefaults(
      ["rpm", "itpm", "otpm"].map((name) => Limit.perDay(name, CAPACITY)),
    );

  const played: PlayedCell[] = [];
  const queue = listCells(client).entries();
  const worker = async (): Promise<void> => {
    for (const [index, cell] of queue) {
      const model = `${client.name.replaceAll(" ", "-")}-${index}`;
      played[index] = new PlayedCell(client, cell, model, stores[cell.store]);
      await played[index].play(provider);
    }
  };
  await Promise.all(Array.from({ length: TOGETHER }, worker));

  await quiet(() => played.map(({ tapped }) => tapped).join());
  await clock.advance(IDLE_MS);
  // Callbacks find the streams that were left when these are collected.
  await collectGarbage(() => played.every((cell) => cell.hasEnded));
  const seen: Seen[] = [];
  for (const cell of played) seen.push(await cell.look(provider));
  for (const repository of Object.values(stores)) await repository.close();
  return seen;
}

/** One cell. Its resource is the model, which no other cell has. */
class PlayedCell {
  readonly #client: Client;
  readonly #cell: Cell;
  readonly #model: string;
  readonly #repository: Repository;
  readonly #watch: Watch;
  readonly #controller = new AbortController();
  #caller: Seen["caller"] = "left waiting";
  #idled = false;
  tapped: number | undefined;

  constructor(client: Client, cell: Cell, model: string, repository: Repository) {
    this.#client = client;
    this.#cell = cell;
    this.#model = model;
    this.#repository = repository;
    this.#watch = new Watch(model);
  }

  /** Makes the call, and waits until it has ended if it does so by itself. */
  async play(provider: Provider): Promise<void> {
    const { end } = this.#cell;
    const hasArrived = (): boolean =>
      provider.requests.some(({ body }) => body.model === this.#model);
    const acted = act(this.#client, this.#cell, this.#call(provider), this.#controller, hasArrived);
    const waiting = setTimeout(PATIENCE_MS, this.#caller, { ref: false });
    this.#caller = await Promise.race([acted, waiting]);
    if (isLeft(end)) await until(() => this.#watch.leases > 0); // some begin later
    if (this.#client.openEnds?.includes(end) !== true) await this.#end();
    this.#idled = this.#watch.openLeases > 0;
  }

  /** Reads the outcome of the cell. */
  async look(provider: Provider): Promise<Seen> {
    await this.#end();
    this.#controller.abort(); // a connection that is still open
    this.#watch.stop();
    const { leases, openLeases, openStreams, ends } = this.#watch;
    return {
      charged: await readCharged(this.#repository, this.#model),
      usage: await usage(this.#repository, this.#model),
      leases,
      openLeases,
      openStreams,
      ends,
      caller: this.#caller,
      idled: this.#idled,
      tapped: this.tapped,
      provided: provider.used.get(this.#model) ?? { input: 0, output: 0 },
    };
  }

  get hasEnded(): boolean {
    return this.#watch.ends.length === this.#watch.leases;
  }

  #end(): Promise<void> {
    return until(() => this.hasEnded);
  }

  #call({ url, refusedUrl }: Provider): Call {
    const { kind, end } = this.#cell;
    return {
      kind,
      model: this.#model,
      url: end === "refused connection" ? refusedUrl : url,
      headers: {
        "x-local-call": this.#model,
        "x-local-headers": '{"retry-after-ms":"1","retry-after":"0"}',
        ...(isLeft(end) ? wishesOfLeft(this.#client, end) : WISHES[end]),
      },
      signal: this.#controller.signal,
      maxRetries: end === "retried" ? 1 : 0,
      toolResults: end === "tool loop" ? 0 : undefined,
      metered: {
        limiter: new RateLimiter({ repository: this.#repository }),
        entity: ENTITY,
        metering: METERING.anthropic,
        estimator: ESTIMATOR,
        idleMs: IDLE_MS,
      },
      tap: (text) => {
        this.tapped = (this.tapped ?? 0) + Buffer.byteLength(text);
      },
    };
  }
}

/** Does what the caller does. */
async function act(
  client: Client,
  { kind, end }: Cell,
  call: Call,
  controller: AbortController,
  hasArrived: () => boolean,
): Promise<Seen["caller"]> {
  try {
    if (end === "aborted at once") controller.abort();
    const isHeld = end === "aborted before" || (end === "aborted during" && !isStream(kind));
    const aborted = isHeld ? abortOnce(hasArrived, controller) : undefined;
    if (end === "tool loop") await loop(client, call);
    else if (isStream(kind)) await readStream(await client.stream(call), end, controller);
    else if (end === "never read") await client.send!(call);
    else await client.ask(call);
    await aborted;
    return "content";
  } catch {
    return "got an error";
  }
}

/** Three steps: two call the tool, the last answers. */
async function loop(client: Client, call: Call): Promise<void> {
  if (client.loop !== undefined) {
    await client.loop(call);
    return;
  }
  for (const toolResults of [0, 1, 2]) {
    const step = { ...call, toolResults };
    if (isStream(call.kind)) await readStream(await client.stream(step));
    else await client.ask(step);
  }
}

async function readStream(
  stream: AsyncIterable<string>,
  end?: End,
  controller?: AbortController,
): Promise<void> {
  if (end === "never read") return;
  let text = "";
  for await (const piece of stream) {
    text += piece;
    if (text.length < SLOW_TEXT.length) continue;
    if (end === "left by break") break;
    if (end === "aborted during") controller?.abort();
  }
}

async function abortOnce(hasArrived: () => boolean, controller: AbortController): Promise<void> {
  await until(hasArrived);
  await setTimeout(2); // for the half of the answer that comes, if it does
  controller.abort();
}

/** Waits until something is true, for a while. */
async function until(isTrue: () => boolean): Promise<void> {
  const giveUpMs = performance.now() + PATIENCE_MS;
  while (!isTrue() && performance.now() < giveUpMs) await setTimeout(1);
}

/** Waits until clients read nothing more by themselves. */
async function quiet(tapped: () => string): Promise<void> {
  for (let before = ""; tapped() !== before; await setTimeout(QUIET_MS)) before = tapped();
}

async function readCharged(repository: Repository, resource: string): Promise<Charge> {
  const charge = { rpm: 0, itpm: 0, otpm: 0 };
  const limiter = new RateLimiter({ repository });
  const left = await limiter.available(ENTITY, resource);
  for (const name of ["rpm", "itpm", "otpm"] as const) charge[name] = CAPACITY - left[name]!;
  return charge;
}

async function usage(repository: Repository, resource: string): Promise<Charge> {
  const { total } = await repository.getUsageSummary({ entityId: ENTITY, resource });
  return { rpm: 0, itpm: 0, otpm: 0, ...total };
}
