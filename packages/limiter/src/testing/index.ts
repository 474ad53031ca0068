export { repositoryContract, type TestRunner } from "./contract/contract.ts";
export { faultyRepository, type Fault } from "./fakes/faulty-repository.ts";
export { ManualClock } from "./fakes/manual-clock.ts";
export { seededRandom } from "./fakes/seeded-random.ts";
