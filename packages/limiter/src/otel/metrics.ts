import type { Attributes, Counter, Histogram, Meter, UpDownCounter } from "@opentelemetry/api";
import { getAmount, type Amounts } from "../core/amounts.ts";
import type {
  AcquireMessage,
  ChargeMessage,
  EndedAmounts,
  EndMessage,
  StreamMessage,
} from "../diagnostics/messages.ts";
import { errorType, KEYS, ResourceNames } from "./attributes.ts";

/** From a decision in memory to a timeout of the store. */
const SECONDS = [
  0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

/** Work and waits may take minutes. */
const LONG_SECONDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** 1 is an estimate that was right. */
const RATIOS = [0.1, 0.25, 0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 2, 5, 10];

/**
 * Turns messages into metrics. Taken − returned + charged is what the entities' own calls consumed:
 * what came to their parents by cascade is not added to it.
 */
export class Metrics {
  readonly #resources = new ResourceNames();
  readonly #acquires: Histogram;
  readonly #waits: Histogram;
  readonly #refusals: Counter;
  readonly #taken: Counter;
  readonly #returned: Counter;
  readonly #charged: Counter;
  readonly #ratios: Histogram;
  readonly #openLeases: OpenCount;
  readonly #openStreams: OpenCount;
  readonly #leases: Histogram;
  readonly #failures: Counter;

  constructor(meter: Meter) {
    const histogram = (
      name: string,
      unit: string,
      boundaries: number[],
      description: string,
    ): Histogram =>
      meter.createHistogram(`zae_limiter.${name}`, {
        unit,
        description,
        advice: { explicitBucketBoundaries: boundaries },
      });
    const counter = (name: string, unit: string, description: string): Counter =>
      meter.createCounter(`zae_limiter.${name}`, { unit, description });
    this.#acquires = histogram(
      "acquire.duration",
      "s",
      SECONDS,
      "Time until an acquire is decided, waiting included.",
    );
    this.#waits = histogram(
      "wait.duration",
      "s",
      LONG_SECONDS,
      "Time that acquires that may wait have waited for tokens.",
    );
    this.#refusals = counter("refusals", "{refusal}", "Refusals, one for each limit that refused.");
    this.#taken = counter("tokens.taken", "{token}", "Tokens that calls took.");
    this.#returned = counter("tokens.returned", "{token}", "Tokens that went back.");
    this.#charged = counter(
      "tokens.charged",
      "{token}",
      "Tokens that were charged beyond what calls took.",
    );
    this.#ratios = histogram(
      "estimate.ratio",
      "1",
      RATIOS,
      "What a committed lease cost, divided by what it took.",
    );
    this.#openLeases = new OpenCount(
      meter.createUpDownCounter("zae_limiter.leases.open", {
        unit: "{lease}",
        description: "Leases that have not ended.",
      }),
    );
    this.#openStreams = new OpenCount(
      meter.createUpDownCounter("zae_limiter.streams.open", {
        unit: "{stream}",
        description: "Streamed answers of models that have not ended.",
      }),
    );
    this.#leases = histogram(
      "lease.duration",
      "s",
      LONG_SECONDS,
      "Time from the grant to the end of a lease.",
    );
    this.#failures = counter(
      "settlement.failures",
      "{failure}",
      "Ends of leases that could not be written.",
    );
  }

  recordAcquire(message: AcquireMessage, seconds: number): void {
    const { outcome = "error", error, waitedMs = 0 } = message;
    const attributes = { ...this.#buildAttributes(message.resource), [KEYS.outcome]: outcome };
    this.#acquires.record(seconds, {
      ...attributes,
      ...(outcome === "error" && { [KEYS.errorType]: errorType(error) }),
    });
    if (message.waitUpToMs > 0) this.#waits.record(waitedMs / 1000, attributes);
    if (outcome === "refused") this.#recordRefusal(message);
    if (outcome === "granted")
      this.#add(this.#taken, message.resource, message.consume, message.also);
    const opens = outcome === "granted" || outcome === "degraded";
    if (opens && message.extending === undefined)
      this.#openLeases.add(this.#resources.toLabel(message.resource), 1);
  }

  recordEnd(message: EndMessage): void {
    const { resource, how, also, error, acquire } = message;
    const attributes = this.#buildAttributes(resource);
    // A call that was aborted after the take has no caller for its lease, which was not counted.
    if (acquire.outcome === undefined) {
      this.#add(this.#taken, resource, message.taken);
      for (const [further, { taken }] of Object.entries(also))
        this.#add(this.#taken, further, taken);
    } else {
      this.#openLeases.add(this.#resources.toLabel(resource), -1);
      this.#leases.record(message.heldMs / 1000, { ...attributes, [KEYS.how]: how });
    }
    if (error !== undefined) {
      this.#failures.add(1, { ...attributes, [KEYS.errorType]: errorType(error) });
      return;
    }
    this.#recordSettlement(resource, message, how);
    for (const [further, amounts] of Object.entries(also))
      this.#recordSettlement(further, amounts, how);
  }

  recordCharge({ resource, amounts, also }: ChargeMessage): void {
    this.#add(this.#charged, resource, amounts, also);
  }

  recordStream({ resource, state }: StreamMessage): void {
    this.#openStreams.add(this.#resources.toLabel(resource), state === "open" ? 1 : -1);
  }

  /** The ends of what is open will not be observed. */
  stop(): void {
    this.#openLeases.takeBack();
    this.#openStreams.takeBack();
  }

  #recordRefusal({ refusal, entityId, resource }: AcquireMessage): void {
    for (const violation of refusal?.violations ?? [])
      this.#refusals.add(1, {
        ...this.#buildAttributes(violation.resource),
        [KEYS.limit]: violation.limitName,
        [KEYS.kind]: violation.kind,
        [KEYS.level]: violation.source,
        [KEYS.of]:
          violation.entityId !== entityId
            ? "parent"
            : violation.resource === resource
              ? "entity"
              : "resource",
      });
  }

  #recordSettlement(
    resource: string,
    { taken, settled }: EndedAmounts,
    how: EndMessage["how"],
  ): void {
    for (const [limit, cost] of Object.entries(settled)) {
      const estimate = getAmount(taken, limit);
      const attributes = { ...this.#buildAttributes(resource), [KEYS.limit]: limit };
      if (cost < estimate) this.#returned.add(estimate - cost, attributes);
      if (cost > estimate) this.#charged.add(cost - estimate, attributes);
      if (how === "commit" && estimate > 0) this.#ratios.record(cost / estimate, attributes);
    }
  }

  /** Adds the amounts of a resource, and those of further ones. */
  #add(
    counter: Counter,
    resource: string,
    amounts: Amounts,
    also: Readonly<Record<string, Amounts>> = {},
  ): void {
    for (const [limit, amount] of Object.entries(amounts))
      if (amount > 0)
        counter.add(amount, { ...this.#buildAttributes(resource), [KEYS.limit]: limit });
    for (const [further, used] of Object.entries(also)) this.#add(counter, further, used);
  }

  #buildAttributes(resource: string): Attributes {
    return { [KEYS.resource]: this.#resources.toLabel(resource) };
  }
}

/** Counts what is open, by resource, and can take that back. */
class OpenCount {
  readonly #counter: UpDownCounter;
  readonly #open = new Map<string, number>();

  constructor(counter: UpDownCounter) {
    this.#counter = counter;
  }

  add(resource: string, count: number): void {
    this.#open.set(resource, (this.#open.get(resource) ?? 0) + count);
    this.#counter.add(count, { [KEYS.resource]: resource });
  }

  takeBack(): void {
    for (const [resource, count] of this.#open) if (count !== 0) this.add(resource, -count);
  }
}
