/*
 * What handlers do, the same for every framework: where possible in the framework's own way,
 * otherwise with Node's response.
 */
import type { ServerResponse } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import type { Behavior, RequestPlan } from "./plan.ts";

/** What a framework should send; undefined if the handler wrote the response. */
export type Answer = string | AsyncIterable<string> | undefined;

/** The response of Node, of either protocol. */
export type RawResponse = ServerResponse & { readonly stream?: ServerHttp2Stream };

/** What handlers without a response to write to do instead. */
const WITHOUT_WRITING: Partial<Record<Behavior, Behavior>> = {
  writes: "streams",
  "throws midway": "stream fails",
  destroys: "destroys and answers",
  "destroys midway": "destroys and answers",
};

const PIECE = "piece ".repeat(50);
const FLOOD_PIECE = "flood ".repeat(10_000);

/** The plan for a handler without a response to write to. */
export function withoutWriting(plan: RequestPlan): RequestPlan {
  return { ...plan, behavior: WITHOUT_WRITING[plan.behavior] ?? plan.behavior };
}

/** Does what the plan says. */
export async function behave(
  { behavior, stepMs }: RequestPlan,
  raw: RawResponse,
  roundEnded: Promise<void>,
): Promise<Answer> {
  switch (behavior) {
    case "answers":
      return "hello";
    case "answers late":
      await sleep(stepMs);
      return "hello";
    case "streams":
      return pieces(PIECE, stepMs);
    case "floods":
      return pieces(FLOOD_PIECE, 0);
    case "stream fails":
      return pieces(PIECE, stepMs, new Error("The stream failed."));
    case "throws":
      throw new Error("The handler failed.");
    case "writes":
      await write(raw, stepMs);
      raw.end();
      return undefined;
    case "throws midway":
      await write(raw, stepMs);
      throw new Error("The handler failed midway.");
    case "destroys":
      raw.destroy();
      return undefined;
    case "destroys and answers":
      raw.destroy();
      return "hello";
    case "destroys late":
      await sleep(stepMs);
      raw.destroy();
      return undefined;
    case "destroys midway":
      await write(raw, stepMs);
      raw.destroy();
      return undefined;
    case "resets":
      await sleep(stepMs);
      reset(raw);
      return undefined;
    case "hangs":
  }
  await roundEnded;
  return "too late";
}

async function* pieces(piece: string, stepMs: number, error?: Error): AsyncGenerator<string> {
  for (let count = 0; count < 4; count += 1) {
    yield piece;
    if (stepMs > 0) await sleep(stepMs);
  }
  if (error !== undefined) throw error;
}

async function write(raw: RawResponse, stepMs: number): Promise<void> {
  raw.write(PIECE);
  await sleep(stepMs);
  raw.write(PIECE);
}

/** The server resets the connection, or the stream. */
function reset({ stream, req }: RawResponse): void {
  if (stream !== undefined) stream.close(constants.NGHTTP2_CANCEL);
  else req.socket.resetAndDestroy();
}
