import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { startFaultProxy, type FaultProxy } from "../../support/fault-proxy.ts";
import { ProxyFaults } from "./proxy-faults.ts";
import type { Assignment, WorkerReport } from "./worker.ts";

// Tests run on the sources, a process on what was built.
const worker = new URL(
  import.meta.url.endsWith(".ts") ? "../../dist/processes/faults/worker.js" : "worker.js",
  import.meta.url,
);

/** A child process behind a proxy of its own, so that what hit it is known. */
export class LoadProcess {
  readonly faults: ProxyFaults;
  readonly #child: ChildProcess;
  readonly #proxy: FaultProxy;

  static async start(options: {
    readonly engineUrl: string;
    readonly stack: string;
    readonly seed: number;
    readonly requestTimeoutMs: number;
  }): Promise<LoadProcess> {
    const proxy = await startFaultProxy(options.engineUrl);
    const faults = new ProxyFaults(options.seed);
    proxy.decide = (request) => faults.decide(request);
    proxy.observe = (request, answer) => faults.observe(request, answer);
    const words = [proxy.endpointUrl, options.stack, String(options.requestTimeoutMs)];
    const child = fork(worker, words, { execArgv: [] });
    const started = new LoadProcess(child, proxy, faults);
    await started.#nextMessage();
    return started;
  }

  private constructor(child: ChildProcess, proxy: FaultProxy, faults: ProxyFaults) {
    this.#child = child;
    this.#proxy = proxy;
    this.faults = faults;
  }

  /** Lets it work, and waits until nothing of it is under way. */
  async run(assignment: Assignment): Promise<WorkerReport> {
    const report = this.#nextMessage();
    this.#child.send(assignment);
    try {
      return (await report) as WorkerReport;
    } finally {
      await this.#proxy.idle();
    }
  }

  async stop(): Promise<void> {
    if (this.#child.connected) {
      this.#child.disconnect();
      await once(this.#child, "exit");
    }
    await this.#proxy.idle();
    await this.#proxy.stop();
  }

  async #nextMessage(): Promise<unknown> {
    const over = new AbortController();
    const { signal } = over;
    try {
      const message = once(this.#child, "message", { signal }).then(([first]) => first as unknown);
      const early = once(this.#child, "exit", { signal }).then(([code]) => {
        throw new Error(`a process ended early with ${code}`);
      });
      return await Promise.race([message, early]);
    } finally {
      over.abort();
    }
  }
}
