/* How the providers' own clients react to our refusals. */
import Anthropic from "@anthropic-ai/sdk";
import Anthropic0 from "anthropic-sdk-0";
import OpenAI from "openai";
import { beforeAll, describe, expect, it } from "vitest";
import { isSkipped, runNewer, TIMEOUT_MS } from "../newer-node.ts";
import { playRefusals, type CallOnce, type Played } from "./refused-client.ts";

const model = "some-model";
const messages = [{ role: "user" as const, content: "What is a token bucket?" }];

const openai: CallOnce = ({ url, ...options }) =>
  new OpenAI({ ...options, baseURL: `${url}/v1`, apiKey: "local" }).chat.completions.create({
    model,
    messages,
  });
const anthropic: CallOnce = ({ url, ...options }) =>
  new Anthropic({ ...options, baseURL: url, apiKey: "local" }).messages.create({
    model,
    messages,
    max_tokens: 50,
  });
const anthropic0: CallOnce = ({ url, ...options }) =>
  new Anthropic0({ ...options, baseURL: url, apiKey: "local" }).messages.create({
    model,
    messages,
    max_tokens: 50,
  });

type Seen = Readonly<Record<string, Played>>;
type Play = () => Promise<Seen>;
describe.each<[string, Play, boolean]>([
  ["openai 6", () => playRefusals(openai), false],
  [
    "openai 7",
    async () => (await runNewer(new URL("refused-client.ts", import.meta.url))).printed as Seen,
    isSkipped,
  ],
  ["@anthropic-ai/sdk 1", () => playRefusals(anthropic), false],
  ["@anthropic-ai/sdk 0", () => playRefusals(anthropic0), false],
])("%s", (_name, play, isLeftOut) => {
  let seen: Seen;
  describe.skipIf(isLeftOut)("refused", () => {
    beforeAll(async () => {
      seen = await play();
    }, TIMEOUT_MS);

    it("waits exactly as long as the limiter asks, and is then granted", () => {
      expect(seen["waits"]).toEqual({ attempts: 2, waits: [30_000] });
    });

    it("gives up after its retries with an error of its own", () => {
      expect(seen["givesUp"]).toMatchObject({
        attempts: 3,
        waits: [30_000, 30_000],
        error: {
          name: "RateLimitError",
          status: 429,
          message: expect.stringContaining("retry in 30 s"),
          retryAfterMs: "30000",
        },
      });
    });

    it("neither hammers nor sleeps if the wait is long, or if it never ends", () => {
      const error = { name: "RateLimitError", status: 429 };
      expect(seen["long"]).toMatchObject({ attempts: 1, waits: [], error });
      expect(seen["never"]).toMatchObject({ attempts: 1, waits: [], error });
      expect(seen["never"]!.error).toMatchObject({
        message: expect.stringContaining("so it can never fit"),
      });
    });

    it("shows a mistake in our words", () => {
      expect(seen["mistake"]).toMatchObject({
        attempts: 1,
        error: { name: "BadRequestError", status: 400, message: expect.stringContaining("tpm") },
      });
    });

    it("takes a closed limiter for a failure of the server", () => {
      expect(seen["closed"]).toMatchObject({
        attempts: 1,
        error: {
          name: expect.stringMatching(/^(InternalServer|ServiceUnavailable)Error$/),
          status: 503,
          message: expect.stringContaining("This limiter was closed"),
        },
      });
    });

    it("hides what is thrown, but for its cause", () => {
      expect(seen["thrown"]).toMatchObject({
        error: {
          name: "APIConnectionError",
          message: "Connection error.",
          code: "ERR_LIMITER_RATE_LIMIT_EXCEEDED",
        },
      });
    });
  });
});
