/* `@zae-limiter/contract`: the tests that every backend has to pass. */

declare module "declared/@zae-limiter/contract" {
  import type { Repository } from "declared/zae-limiter";
  import type { ManualClock } from "declared/zae-limiter/testing";
  export interface TestRunner {
    describe(name: string, body: () => void): void;
    it(name: string, body: () => Promise<void>): void;
  }
  export function repositoryContract(
    name: string,
    open: (clock: ManualClock) => Promise<Repository>,
    runner?: TestRunner,
  ): void; // runner: the global describe and it
}
