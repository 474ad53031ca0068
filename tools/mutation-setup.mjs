// Property tests draw a seed of their own in each run, and simplify what they find. A mutation has
// to be found in every run or in none, and its counterexample is of no interest. Loaded before each
// test file of a mutation.
import { configureGlobal } from "fast-check";

configureGlobal({ seed: Number(process.env.SEED), endOnFailure: true });
