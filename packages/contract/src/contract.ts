import type { Repository } from "zae-limiter";
import { ManualClock } from "zae-limiter/testing";
import { acquireTopic } from "./acquire.ts";
import { auditTopic } from "./audit.ts";
import { badInputTopic } from "./bad-input.ts";
import { cacheTopic } from "./cache.ts";
import { cancellationTopic } from "./cancellation.ts";
import { capacityTopic } from "./capacity.ts";
import { cascadeTopic } from "./cascade.ts";
import { chargesTopic } from "./charges.ts";
import { closingTopic } from "./closing.ts";
import { configurationTopic } from "./configuration.ts";
import { countsTopic } from "./counts.ts";
import { debtTopic } from "./debt.ts";
import { declaredLimitsTopic } from "./declared-limits.ts";
import { defaultsTopic } from "./defaults.ts";
import { doneWorkTopic } from "./done-work.ts";
import { entitiesTopic } from "./entities.ts";
import { entityChangesTopic } from "./entity-changes.ts";
import { erasingTopic } from "./erasing.ts";
import { exportsTopic } from "./exports.ts";
import { guardedWritesTopic } from "./guarded-writes.ts";
import { inheritanceTopic } from "./inheritance.ts";
import { leaseEndsTopic } from "./lease-ends.ts";
import { leasesTopic } from "./leases.ts";
import { leaveTopic } from "./leave.ts";
import { listingsTopic } from "./listings.ts";
import { namespacesTopic } from "./namespaces.ts";
import { unusualIdentifiersTopic } from "./unusual-identifiers.ts";
import { overridesTopic } from "./overrides.ts";
import { policyChangesTopic } from "./policy-changes.ts";
import { provisionerStateTopic } from "./provisioner-state.ts";
import { quotasTopic } from "./quotas.ts";
import { readsOfManyTopic } from "./reads-of-many.ts";
import { recordsTopic } from "./records.ts";
import { refillTopic } from "./refill.ts";
import { settlementFaultsTopic } from "./settlement-faults.ts";
import { sessionsTopic } from "./sessions.ts";
import { severalResourcesTopic } from "./several-resources.ts";
import { statusesTopic } from "./statuses.ts";
import { storedLevelsTopic } from "./stored-levels.ts";
import { unavailabilityTopic } from "./unavailability.ts";
import { unlimitedNamesTopic } from "./unlimited-names.ts";
import { usageTopic } from "./usage.ts";
import { usageCascadeTopic } from "./usage-cascade.ts";
import { waitingTopic } from "./waiting.ts";
import { openWorld, type Topic } from "./world.ts";

/** The part of a test runner that the contract uses. Vitest, Jest, Mocha and node:test have it. */
export interface TestRunner {
  /**
   * Groups tests under a name.
   * @example runner.describe("acquires", () => runner.it("grants what fits", async () => {}));
   */
  describe(name: string, body: () => void): void;
  /**
   * Defines one test.
   * @example runner.it("grants what fits", async () => {});
   */
  it(name: string, body: () => Promise<void>): void;
}

const TOPICS: Readonly<Record<string, Topic>> = {
  "acquires and refusals": acquireTopic,
  leases: leasesTopic,
  "ends of leases": leaseEndsTopic,
  "work that was done": doneWorkTopic,
  "what is left after a grant": statusesTopic,
  debt: debtTopic,
  "charges for what already happened": chargesTopic,
  cascade: cascadeTopic,
  "several resources": severalResourcesTopic,
  waiting: waitingTopic,
  cancellation: cancellationTopic,
  overrides: overridesTopic,
  "levels of configuration": configurationTopic,
  "what a level stores": storedLevelsTopic,
  "changes of configuration": policyChangesTopic,
  "levels that inherit": inheritanceTopic,
  "defaults in code": defaultsTopic,
  "limits that no level in force has": unlimitedNamesTopic,
  refill: refillTopic,
  quotas: quotasTopic,
  sessions: sessionsTopic,
  "what calls leave for others": leaveTopic,
  "limits that count another name": countsTopic,
  entities: entitiesTopic,
  "changes of entities": entityChangesTopic,
  "entities that are erased": erasingTopic,
  namespaces: namespacesTopic,
  audit: auditTopic,
  usage: usageTopic,
  "usage with parents": usageCascadeTopic,
  capacity: capacityTopic,
  listings: listingsTopic,
  "reads of many": readsOfManyTopic,
  cache: cacheTopic,
  records: recordsTopic,
  "exports of limits": exportsTopic,
  "the state of declared limits": provisionerStateTopic,
  "guarded writes": guardedWritesTopic,
  "declared limits": declaredLimitsTopic,
  "bad input": badInputTopic,
  "unusual identifiers": unusualIdentifiersTopic,
  unavailability: unavailabilityTopic,
  "faults at the end of a lease": settlementFaultsTopic,
  closing: closingTopic,
};

/**
 * Defines the tests that every backend has to pass. Each test opens an empty repository on a clock
 * that the test moves, and closes it at the end. `runner` defaults to the global `describe` and
 * `it`.
 *
 * @example
 * repositoryContract("MemoryRepository", async (clock) => new MemoryRepository({ clock }), {
 *   describe,
 *   it,
 * });
 */
export function repositoryContract(
  name: string,
  open: (clock: ManualClock) => Promise<Repository>,
  runner: TestRunner = globalRunner(),
): void {
  runner.describe(name, () => {
    for (const [title, define] of Object.entries(TOPICS)) {
      runner.describe(title, () => {
        define((behaviour, body) => {
          runner.it(behaviour, async () => {
            const clock = new ManualClock();
            await using repository = await open(clock);
            await body(openWorld(repository, clock));
          });
        });
      });
    }
  });
}

function globalRunner(): TestRunner {
  const { describe, it } = globalThis as Partial<TestRunner>;
  if (describe === undefined || it === undefined)
    throw new TypeError(
      "There are no global functions describe and it. Pass those of your test runner as third argument: { describe, it }.",
    );
  return { describe, it };
}
