// Made by `npm run declare`.

declare module "declared/@zae-limiter/contract" {
  import { ManualClock } from "zae-limiter/testing";
  import { Repository } from "declared/zae-limiter";
  export function repositoryContract(
    name: string,
    open: (clock: ManualClock) => Promise<Repository>,
    runner?: TestRunner,
  ): void;
  export interface TestRunner {
    describe(name: string, body: () => void): void;
    it(name: string, body: () => Promise<void>): void;
  }
}
