/*
 * What is published about calls. A TracedCall is made only while there are subscribers; otherwise a
 * call costs one check for them, and its lease has no trace.
 *
 *   acquire ──▶ take ──▶ granted ──▶ lease ──▶ takeMore … ──▶ end
 *                 │
 *                 └──▶ refused, or threw: there is no lease, and no end
 *
 * A lease that was acquired before there was a subscriber publishes nothing, not even its end: a
 * subscriber that counts leases would see ends without a beginning.
 */
import type { Amounts } from "../core/amounts.ts";
import { RateLimitExceeded } from "../core/bucket/refusal.ts";
import { ACQUIRE, CHARGE, END } from "../diagnostics/channels.ts";
import type { AcquireMessage, EndedAmounts } from "../diagnostics/messages.ts";
import type { ConsumeRequest, MaybePromise, ResourceAmounts } from "../repository/port.ts";
import type { Repository } from "../repository/repository.ts";
import type { LeaseTrace, Taken } from "./lease.ts";
import type { PartAmounts } from "./resource-lease.ts";
import type { TakeResult } from "./waiting.ts";

/** The grant that a lease keeps. */
export type Grant = Taken & { readonly granted: true };

/** The part of a repository that is published. */
type Source = Pick<Repository, "namespaceName" | "clock">;

/** Publishes one call and its lease to subscribers. */
export class TracedCall implements LeaseTrace {
  readonly #source: Source;
  readonly #message: AcquireMessage;
  /** When the call began; when it was granted, from then on. */
  #sinceMs: number;

  constructor(source: Source, wanted: ConsumeRequest, waitUpToMs = 0) {
    this.#source = source;
    this.#sinceMs = source.clock.now();
    const { amounts: consume, ...call } = describeCall(source, wanted);
    this.#message = { ...call, consume, waitUpToMs, extending: undefined };
  }

  /** Publishes the acquire around its decision. The grant refers to this call, for its lease. */
  async take(decide: () => MaybePromise<TakeResult<Grant>>): Promise<TakeResult<Grant>> {
    const message = this.#message;
    const beganMs = this.#sinceMs;
    let result: TakeResult<Grant> | undefined;
    await ACQUIRE.tracePromise(async () => {
      try {
        result = await decide();
      } finally {
        this.#sinceMs = this.#source.clock.now();
        message.waitedMs = message.waitUpToMs > 0 ? this.#sinceMs - beganMs : 0;
      }
      if (result.granted) message.outcome = result.receipt === undefined ? "degraded" : "granted";
      else {
        message.outcome = "refused";
        message.refusal = new RateLimitExceeded(result);
      }
    }, message);
    return result!.granted ? this.attachTo(result!) : result!;
  }

  /** A grant whose lease publishes its end. A backend's own grant need not be a plain object. */
  attachTo({ receipt, policies }: Grant): Grant {
    return receipt === undefined
      ? { granted: true, receipt, trace: this }
      : { granted: true, receipt, policies, trace: this };
  }

  /** Publishes a `lease.consume` around its decision. */
  async takeMore<T>(amounts: ResourceAmounts, take: () => Promise<T>): Promise<T> {
    const { namespace, entityId, outcome } = this.#message;
    const message: AcquireMessage = {
      namespace,
      entityId,
      resource: amounts.resource,
      consume: amounts.amounts,
      also: NO_RESOURCES,
      waitUpToMs: 0,
      extending: this.#message,
    };
    let result: T | undefined;
    await ACQUIRE.tracePromise(async () => {
      message.waitedMs = 0;
      try {
        result = await take();
        message.outcome = outcome!;
      } catch (error) {
        if (!(error instanceof RateLimitExceeded)) throw error;
        message.outcome = "refused";
        message.refusal = error;
      }
    }, message);
    if (message.refusal !== undefined) throw message.refusal;
    return result!;
  }

  /** Publishes the end of the lease when it was written, or could not be. */
  async end(
    how: "commit" | "rollback",
    written: Promise<void>,
    amounts: () => readonly PartAmounts[],
  ): Promise<void> {
    try {
      await written;
    } catch (error) {
      this.#publishEnd(how, amounts(), error);
      throw error;
    }
    this.#publishEnd(how, amounts(), undefined);
  }

  #publishEnd(how: "commit" | "rollback", parts: readonly PartAmounts[], error: unknown): void {
    if (!END.hasSubscribers) return;
    const { namespace, entityId, resource } = this.#message;
    const ended = parts.map(
      (part) => [part.resource, computeEndedAmounts(how, part, error)] as const,
    );
    END.publish({
      namespace,
      entityId,
      resource,
      how,
      ...ended[0]![1],
      also: Object.fromEntries(ended.slice(1)),
      heldMs: this.#source.clock.now() - this.#sinceMs,
      error,
      acquire: this.#message,
    });
  }
}

/** Publishes a recorded charge if there are subscribers. */
export function publishCharge(source: Source, charged: ConsumeRequest): void {
  if (CHARGE.hasSubscribers) CHARGE.publish(describeCall(source, charged));
}

const NO_RESOURCES: Readonly<Record<string, never>> = Object.freeze({});

/** The fields that all messages have. */
function describeCall(
  { namespaceName }: Source,
  { entityId, resources }: ConsumeRequest,
): {
  readonly namespace: string;
  readonly entityId: string;
  readonly resource: string;
  readonly amounts: Amounts;
  readonly also: Readonly<Record<string, Amounts>>;
} {
  const [own, ...further] = resources;
  return {
    namespace: namespaceName,
    entityId,
    resource: own!.resource,
    amounts: own!.amounts,
    also:
      further.length === 0
        ? NO_RESOURCES
        : Object.fromEntries(further.map(({ resource, amounts }) => [resource, amounts])),
  };
}

/** The cost as stored: a failed end has changed nothing in the store. */
function computeEndedAmounts(
  how: "commit" | "rollback",
  part: PartAmounts,
  error: unknown,
): EndedAmounts {
  const { taken, settled } = part;
  if (error !== undefined) return { taken, settled: taken };
  return { taken, settled: how === "commit" ? settled : zeros(settled) };
}

function zeros(amounts: Amounts): Amounts {
  return Object.fromEntries(Object.keys(amounts).map((name) => [name, 0]));
}
