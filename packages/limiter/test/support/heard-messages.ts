import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Repository } from "zae-limiter";
import { CHANNELS, type AcquireMessage, type EndMessage } from "zae-limiter/diagnostics";

/** Listens to channels until it is stopped. */
export class HeardMessages {
  #subscriptions: (readonly [string, (message: unknown) => void])[] = [];

  /** Everything that is published on a channel from now on. */
  on<Message>(name: string): Message[] {
    const messages: Message[] = [];
    this.each(name, (message) => messages.push(message as Message));
    return messages;
  }

  acquires(event = "asyncEnd"): AcquireMessage[] {
    return this.on(`tracing:${CHANNELS.acquire}:${event}`);
  }

  ends(): EndMessage[] {
    return this.on(CHANNELS.end);
  }

  each(name: string, listener: (message: unknown) => void): void {
    subscribe(name, listener);
    this.#subscriptions.push([name, listener]);
  }

  stop(): void {
    for (const [name, listener] of this.#subscriptions) unsubscribe(name, listener);
    this.#subscriptions = [];
  }
}

/** A repository, with a look at what is read of it. */
export function observedRepository(
  repository: Repository,
  onRead: (property: PropertyKey) => void,
): Repository {
  return new Proxy(repository, {
    get(target, property) {
      onRead(property);
      const member: unknown = Reflect.get(target, property, target);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}
