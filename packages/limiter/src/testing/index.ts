export { faultyRepository, type Fault } from "./fakes/faulty-repository.ts";
export { ManualClock } from "./fakes/manual-clock.ts";
export { seededRandom } from "./fakes/seeded-random.ts";
