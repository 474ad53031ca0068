/* Plays one cell of the matrix with a real client, and looks at what it has left behind. */
import { subscribe, tracingChannel, unsubscribe } from "node:diagnostics_channel";
import { setTimeout } from "node:timers/promises";
import { Limit, RateLimiter, type Repository } from "zae-limiter";
import {
  CHANNELS,
  type AcquireMessage,
  type EndMessage,
  type StreamMessage,
} from "zae-limiter/diagnostics";
import { METERING, type Estimator } from "zae-limiter/llm";
import { MemoryRepository } from "zae-limiter/memory";
import { SqliteRepository } from "zae-limiter/sqlite";
import { ManualClock } from "zae-limiter/testing";
import { ENDS, isPlayed, isStream, KINDS, STORES } from "./cells.ts";
import type { Cell, Charge, End, Seen } from "./cells.ts";
import type { Call, Client } from "./client.ts";

/** What is used of `examples/local-provider`. */
export interface Provider {
  readonly url: string;
  readonly refusedUrl: string;
  readonly requests: readonly { readonly body: { readonly model: string } }[];
  readonly used: ReadonlyMap<string, Seen["provided"]>;
}

/** What is reserved for every call; nothing of it resembles what the provider reports. */
export const RESERVED = { input: 40, output: 100 };

const ESTIMATOR: Estimator = {
  estimate: ({ maxOutputTokens }) => ({ ...RESERVED, ...(maxOutputTokens === 0 && { output: 0 }) }),
  tokensOf: (_call, textBytes) => textBytes,
};

const CAPACITY = 100_000;
const ENTITY = "key-1";
/** So short that nothing is earned by waiting for it. */
const IDLE_MS = 1;
/** Cells that are played at the same time. */
const TOGETHER = 16;
/** After this long, a call that has not ended does not end by itself. */
const PATIENCE_MS = 1500;
/** No caller waits this long, not even on a busy machine. */
const LONG_MS = 10_000;
/** A client that has read nothing for so long reads nothing more on its own. */
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
 * What a stream brings that is left: all of it where the client reads on. Three words, so that it
 * is known what went by; but who reads ahead would wait for the fourth, so there it is too long.
 */
function wishesOfLeft(client: Client, { end }: Cell): Readonly<Record<string, string>> {
  if (client.readsOn === true) return {};
  const isLong = end === "never read" || client.readsAhead === true;
  return isLong ? { "x-local-answer": "2000" } : { "x-local-fault": "slow" };
}

/** All cells of a client. */
export function cellsOf(client: Client): readonly Cell[] {
  const cells = KINDS.flatMap((kind) =>
    ENDS.flatMap((end) => STORES.map((store) => ({ kind, end, store }))),
  );
  return cells.filter((cell) => isPlayed(client.name, cell));
}

/** Plays all cells of a client, several at a time; what each has left behind, in their order. */
export async function playAll(client: Client, provider: Provider): Promise<readonly Seen[]> {
  const cells = cellsOf(client);
  const seen: Seen[] = [];
  const queue = cells.entries();
  const worker = async (): Promise<void> => {
    for (const [index, cell] of queue) seen[index] = await play(client, cell, provider, index);
  };
  await Promise.all(Array.from({ length: TOGETHER }, worker));
  return seen;
}

async function play(client: Client, cell: Cell, provider: Provider, index: number): Promise<Seen> {
  const model = `${client.name.replaceAll(/[^\w-]/g, "-")}-${index}`;
  const clock = new ManualClock();
  await using repository = await open(cell, clock);
  await repository.setSystemDefaults(
    ["rpm", "itpm", "otpm"].map((name) => Limit.perDay(name, CAPACITY)),
  );
  using watch = new Watch(model);
  const isLeft = cell.end === "left by break" || cell.end === "never read";
  const staysOpen = client.openEnds?.includes(cell.end) === true;
  const controller = new AbortController();
  let tapped: number | undefined;
  const call: Call = {
    kind: cell.kind,
    model,
    url: cell.end === "refused connection" ? provider.refusedUrl : provider.url,
    headers: {
      "x-local-call": model,
      "x-local-headers": '{"retry-after-ms":"1","retry-after":"0"}',
      ...(isLeft ? wishesOfLeft(client, cell) : WISHES[cell.end]),
    },
    signal: controller.signal,
    maxRetries: cell.end === "retried" ? 1 : 0,
    toolResults: cell.end === "tool loop" ? 0 : undefined,
    metered: {
      limiter: new RateLimiter({ repository }),
      entity: ENTITY,
      metering: METERING.anthropic,
      estimator: ESTIMATOR,
      idleMs: IDLE_MS,
    },
    tap: (text) => {
      tapped = (tapped ?? 0) + Buffer.byteLength(text);
    },
  };

  const acted = act(client, cell, call, controller, () =>
    provider.requests.some(({ body }) => body.model === model),
  );
  const waiting = setTimeout(LONG_MS, "left waiting" as const, { ref: false });
  const caller = await Promise.race([acted, waiting]);
  if (isLeft) await until(() => watch.leases > 0, PATIENCE_MS); // some begin later
  if (staysOpen) await quiet(() => tapped);
  else await until(() => watch.openLeases === 0, PATIENCE_MS);
  const idled = watch.openLeases > 0;
  if (idled) await clock.advance(IDLE_MS);
  await until(() => watch.openLeases === 0, PATIENCE_MS);
  controller.abort(); // connections that are still open
  return {
    charged: await charged(repository, model),
    usage: await usage(repository, model),
    leases: watch.leases,
    openLeases: watch.openLeases,
    openStreams: watch.openStreams,
    caller,
    idled,
    tapped,
    provided: provider.used.get(model) ?? { input: 0, output: 0 },
  };
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
    else await client.ask(call);
    await aborted;
    return "content";
  } catch {
    return "told of an error";
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
    if (isStream(call.kind)) for await (const _text of await client.stream(step));
    else await client.ask(step);
  }
}

async function readStream(
  stream: AsyncIterable<string>,
  end: End,
  controller: AbortController,
): Promise<void> {
  if (end === "never read") return;
  let text = "";
  for await (const piece of stream) {
    text += piece;
    if (text.length < SLOW_TEXT.length) continue;
    if (end === "left by break") break;
    if (end === "aborted during") controller.abort();
  }
}

async function abortOnce(hasArrived: () => boolean, controller: AbortController): Promise<void> {
  await until(hasArrived, PATIENCE_MS);
  await setTimeout(2); // for the half of the answer that comes, if it does
  controller.abort();
}

async function until(isTrue: () => boolean, patienceMs: number): Promise<void> {
  for (const giveUpMs = performance.now() + patienceMs; performance.now() < giveUpMs;) {
    if (isTrue()) return;
    await setTimeout(1);
  }
}

/** Until a client reads nothing more on its own. */
async function quiet(tapped: () => number | undefined): Promise<void> {
  let before: number | undefined = -1;
  while (tapped() !== before) {
    before = tapped();
    await setTimeout(QUIET_MS);
  }
}

function open({ store }: Cell, clock: ManualClock): Promise<Repository> | Repository {
  return store === "memory"
    ? new MemoryRepository({ clock })
    : SqliteRepository.open(":memory:", { clock });
}

async function charged(repository: Repository, resource: string): Promise<Charge> {
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

/** Counts leases and streams of one resource by what the limiter publishes. */
class Watch implements Disposable {
  readonly #resource: string;
  leases = 0;
  openLeases = 0;
  openStreams = 0;
  readonly #handlers = {
    asyncEnd: (message: unknown) => this.#taken(message as AcquireMessage),
  };
  readonly #onEnd = (message: unknown): void => {
    if ((message as EndMessage).resource === this.#resource) this.openLeases -= 1;
  };
  readonly #onStream = (message: unknown): void => {
    const { resource, state } = message as StreamMessage;
    if (resource === this.#resource) this.openStreams += state === "open" ? 1 : -1;
  };

  constructor(resource: string) {
    this.#resource = resource;
    tracingChannel(CHANNELS.acquire).subscribe(this.#handlers as never);
    subscribe(CHANNELS.end, this.#onEnd);
    subscribe(CHANNELS.stream, this.#onStream);
  }

  [Symbol.dispose](): void {
    tracingChannel(CHANNELS.acquire).unsubscribe(this.#handlers as never);
    unsubscribe(CHANNELS.end, this.#onEnd);
    unsubscribe(CHANNELS.stream, this.#onStream);
  }

  #taken({ resource, outcome, extending }: AcquireMessage): void {
    if (resource !== this.#resource || outcome !== "granted" || extending !== undefined) return;
    this.leases += 1;
    this.openLeases += 1;
  }
}
