import { subscribe, tracingChannel, unsubscribe } from "node:diagnostics_channel";
import {
  CHANNELS,
  type AcquireMessage,
  type EndMessage,
  type MeteredMessage,
  type StreamMessage,
} from "zae-limiter/diagnostics";

/** Counts leases and streams of one resource by what the limiter publishes. */
export class Watch {
  readonly #resource: string;
  leases = 0;
  openLeases = 0;
  openStreams = 0;
  /** How the calls ended, by their records. */
  readonly ends: string[] = [];
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

  readonly #onMetered = (message: unknown): void => {
    const { resource, end } = message as MeteredMessage;
    if (resource === this.#resource) this.ends.push(end);
  };

  constructor(resource: string) {
    this.#resource = resource;
    tracingChannel(CHANNELS.acquire).subscribe(this.#handlers as never);
    subscribe(CHANNELS.end, this.#onEnd);
    subscribe(CHANNELS.stream, this.#onStream);
    subscribe(CHANNELS.metered, this.#onMetered);
  }

  stop(): void {
    tracingChannel(CHANNELS.acquire).unsubscribe(this.#handlers as never);
    unsubscribe(CHANNELS.end, this.#onEnd);
    unsubscribe(CHANNELS.stream, this.#onStream);
    unsubscribe(CHANNELS.metered, this.#onMetered);
  }

  #taken({ resource, outcome, extending }: AcquireMessage): void {
    if (resource !== this.#resource || outcome !== "granted" || extending !== undefined) return;
    this.leases += 1;
    this.openLeases += 1;
  }
}
