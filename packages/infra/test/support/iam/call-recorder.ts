import { AsyncLocalStorage } from "node:async_hooks";
import type { Repository } from "zae-limiter";
import type { DynamoTransport } from "zae-limiter/dynamodb";
import { listIamCalls, type IamCall } from "./iam-calls.ts";

/** An action that a method has caused, without what differs from one call to the next. */
export interface RecordedCall extends IamCall {
  readonly method: string;
}

/** The namespaces of recorded calls: the first of a call, and the second. */
export const [OWN, OTHER] = ["ownownownow", "otherothero"] as const;

/**
 * Records which actions the methods of repositories cause. What runs in the background belongs to
 * the method that has begun it.
 */
export class CallRecorder {
  readonly #running = new AsyncLocalStorage<string>();
  readonly #recorded = new Map<string, RecordedCall>();
  readonly #methods = new Set<string>();

  /** What was recorded, equal calls once. */
  get calls(): readonly RecordedCall[] {
    return [...this.#recorded.values()];
  }

  /** Every method that ran, also those that caused no action. */
  get methods(): ReadonlySet<string> {
    return this.#methods;
  }

  /** Runs the work as a method of this name. */
  during<T>(method: string, work: () => T): T {
    this.#methods.add(method);
    return this.#running.getStore() === undefined ? this.#running.run(method, work) : work();
  }

  /** The transport, with every call recorded that a method makes. */
  transport(inner: DynamoTransport): DynamoTransport {
    return {
      call: (operation, input, options) => {
        this.#record(operation, input);
        return inner.call(operation, input, options);
      },
      close: () => inner.close(),
    };
  }

  /** The repository, with its methods recorded as what runs. */
  watched<R extends Repository>(repository: R): R {
    return new Proxy(repository, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== "function") return member;
        return (...values: unknown[]) => {
          const result = this.during(getMethod(name, values), () =>
            Reflect.apply(member, target, values),
          ) as unknown;
          return name === "namespace"
            ? (result as Promise<Repository>).then((scoped) => this.watched(scoped))
            : result;
        };
      },
    });
  }

  #record(operation: string, input: object): void {
    const method = this.#running.getStore();
    if (method === undefined) return;
    for (const call of listIamCalls(operation, input as Readonly<Record<string, unknown>>)) {
      const recorded = { method, ...withoutNames(call) };
      this.#recorded.set(JSON.stringify(recorded), recorded);
    }
  }
}

/** The method that runs. `namespace` also stores a setting if it gets one of all processes. */
function getMethod(name: string | symbol, [, options]: readonly unknown[]): string {
  const isStored = Object.keys(Object(options)).some((option) => option !== "bucketTtlMultiplier");
  return name === "namespace" && isStored ? "setSystemDefaults" : String(name);
}

/** The call on examples of the same keys: namespaces and kinds count, names do not. */
function withoutNames({ action, path, leadingKeys }: IamCall): IamCall {
  const names = [OWN, OTHER, "thirdthirdt", "fourthfourt"];
  const given = new Map<string, string>([["_", "_"]]);
  const keys = leadingKeys.map((key) => {
    const [, namespaceId = "", kind = "", rest = ""] = /^([^/]*)(\/[A-Z_]+#)?(.*)$/s.exec(key)!;
    const known = given.get(namespaceId) ?? names[given.size - 1]!;
    given.set(namespaceId, known);
    return `${known}${kind}${rest === "" ? "" : "name"}`;
  });
  return { action, path, leadingKeys: [...new Set(keys)].sort() };
}
