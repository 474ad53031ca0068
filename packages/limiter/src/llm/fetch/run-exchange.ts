import type { AnswerReader, AnswerSoFar } from "../answers/answer-reader.ts";
import type { MeteredCall } from "../metered-call.ts";
import { runMetered } from "../nested-calls.ts";
import { buildWatchedResponse } from "./build-watched-response.ts";

/** A response and its reader. */
export interface Answered {
  readonly response: Response;
  /** Reads the body; undefined if the answer costs nothing. */
  readonly reader: AnswerReader<Uint8Array> | undefined;
  /** Whether the reader may leave something out of the body. */
  readonly isShortened: boolean;
}

/** An answer without a body. */
const NOTHING: AnswerSoFar = {
  outputBytes: 0,
  reported: undefined,
  isReportFinal: false,
  isComplete: true,
  hasUnreadableUsage: false,
};

/** A body that has been read already, or that is not a web stream. */
const UNREADABLE: AnswerSoFar = { ...NOTHING, outputBytes: undefined };

/**
 * Sends a granted call and settles it by its answer. Resolves with the provider's response: the
 * same object, or a copy whose body is watched.
 */
export async function runExchange(
  call: MeteredCall,
  signal: AbortSignal | undefined,
  send: () => Promise<Answered>,
): Promise<Response> {
  let answered: Answered;
  try {
    answered = await runMetered(send);
  } catch (error) {
    await call.settleThrown(error, signal);
    throw error;
  }
  const { response, reader } = answered;
  const { ok, status, headers, body } = response;
  if (!ok) {
    // No model has answered: the call failed, or was redirected and the caller follows by itself.
    await call.settleFailed();
    await call.observeProviderLimits(headers, status);
    return response;
  }
  void call.observeProviderLimits(headers, status);
  if (body === null || reader === undefined) {
    await call.settleAnswered(NOTHING);
    return response;
  }
  if (typeof body.getReader !== "function" || body.locked) {
    await call.settleAnswered(UNREADABLE);
    return response;
  }
  const watched = call.watch(body, reader, signal);
  return buildWatchedResponse(watched, response, buildHeaders(answered));
}

/** Drops the length of a body from which an event may be left out. */
function buildHeaders({ response, isShortened }: Answered): Headers {
  if (!isShortened) return response.headers;
  const headers = new Headers(response.headers);
  headers.delete("content-length");
  return headers;
}
