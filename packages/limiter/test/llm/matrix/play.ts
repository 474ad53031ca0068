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
import { isPossible, isStream, KINDS, ENDS, STORES } from "./cells.ts";
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
  "left by break": { "x-local-fault": "slow" },
  "never read": { "x-local-answer": "2000" },
  retried: { "x-local-fault": "429 1" },
  "tool loop": { "x-local-tool-calls": "2" },
};

/** All cells of a client. */
export function cellsOf(client: Client): readonly Cell[] {
  const cells = KINDS.flatMap((kind) =>
    ENDS.flatMap((end) => STORES.map((store) => ({ kind, end, store }))),
  );
  return cells.filter(
    ({ kind, end }) =>
      client.kinds.includes(kind) && isPossible(kind, end) && client.without?.[end] === undefined,
  );
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
  const controller = new AbortController();
  let tapped: number | undefined;
  const call: Call = {
    kind: cell.kind,
    model,
    url: cell.end === "refused connection" ? provider.refusedUrl : provider.url,
    headers: {
      "x-local-call": model,
      "x-local-headers": '{"retry-after-ms":"1","retry-after":"0"}',
      ...WISHES[cell.end],
      ...(client.staysOpen?.(cell) === true && { "x-local-fault": "", "x-local-answer": "2000" }),
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

  const threw = await act(client, cell, call, controller, () =>
    provider.requests.some(({ body }) => body.model === model),
  );
  const patienceMs = client.staysOpen?.(cell) === true ? 0 : PATIENCE_MS;
  await until(() => watch.openLeases === 0, patienceMs);
  const idled = watch.openLeases > 0;
  if (idled) {
    await setTimeout(5); // whatever the client still reads on its own
    await clock.advance(IDLE_MS);
    await until(() => watch.openLeases === 0, PATIENCE_MS);
  }
  controller.abort(); // connections that are still open
  return {
    charged: await charged(repository, model),
    usage: await usage(repository, model),
    leases: watch.leases,
    openLeases: watch.openLeases,
    openStreams: watch.openStreams,
    threw,
    idled,
    tapped,
    provided: provider.used.get(model) ?? { input: 0, output: 0 },
  };
}

/** Does what the caller does; whether it was told of an error. */
async function act(
  client: Client,
  { kind, end }: Cell,
  call: Call,
  controller: AbortController,
  hasArrived: () => boolean,
): Promise<boolean> {
  try {
    if (end === "aborted at once") controller.abort();
    const isHeld = end === "aborted before" || (end === "aborted during" && !isStream(kind));
    const aborted = isHeld ? abortOnce(hasArrived, controller) : undefined;
    if (end === "tool loop") await loop(client, call);
    else if (isStream(kind)) await readStream(await client.stream(call), end, controller);
    else await client.ask(call);
    await aborted;
    return false;
  } catch {
    return true;
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
