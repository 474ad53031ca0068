export { repositoryContract, type TestRunner } from "./contract/contract.ts";
export { faultyRepository, type Fault } from "./faulty-repository.ts";
export { ManualClock } from "./manual-clock.ts";
export { seededRandom } from "./seeded-random.ts";
