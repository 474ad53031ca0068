import { afterAll, beforeAll } from "vitest";
import { startProvider, type Provider } from "../../../../../examples/local-provider/provider.ts";
import { plainFetch } from "./clients/plain-fetch.ts";
import { describeMatrix } from "./describe-matrix.ts";
import { playAll } from "./play.ts";

let provider: Provider;
beforeAll(async () => {
  provider = await startProvider();
});
afterAll(() => provider.stop());

describeMatrix(plainFetch, () => playAll(plainFetch, provider));
