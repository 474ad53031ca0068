// The clients that run under every Node that is supported.
import { afterAll, beforeAll } from "vitest";
import { startProvider, type Provider } from "../../../../../examples/local-provider/provider.ts";
import { describeMatrix } from "./describe-matrix.ts";
import { OLDER } from "./older-clients.ts";
import { playAll } from "./play.ts";

let provider: Provider;
beforeAll(async () => {
  provider = await startProvider();
});
afterAll(() => provider.stop());

for (const client of OLDER) describeMatrix(client, () => playAll(client, provider));
