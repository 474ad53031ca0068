export { repositoryContract, type TestRunner } from "./contract.ts";
