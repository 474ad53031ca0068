import type { ProtocolName } from "../answers/answer-reader-for.ts";

/** The longest endings first: `/chat/completions` ends with `/completions` too. */
const ENDINGS: readonly (readonly [ending: string, protocol: ProtocolName])[] = [
  ["/chat/completions", "chat"],
  ["/completions", "completions"],
  ["/responses", "responses"],
  ["/embeddings", "embeddings"],
  ["/messages", "messages"],
];

/** A message of a thread of OpenAI's assistants is stored, and no model answers it. */
const MESSAGE_OF_THREAD = /\/threads\/[^/]+\/messages$/;

const DEPLOYMENT = /\/deployments\/([^/]+)\//;

/** What a request to a model speaks; undefined if the request is none. */
export function findProtocol(method: string, pathname: string): ProtocolName | undefined {
  if (method !== "POST") return undefined;
  const path = pathname.endsWith("/") ? pathname.slice(0, -1) : pathname;
  if (MESSAGE_OF_THREAD.test(path)) return undefined;
  return ENDINGS.find(([ending]) => path.endsWith(ending))?.[1];
}

/** The deployment that a path of Azure names. There, the body need not name a model. */
export function findDeployment(pathname: string): string | undefined {
  const name = DEPLOYMENT.exec(pathname)?.[1];
  if (name === undefined) return undefined;
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // no valid escape, so it means itself
  }
}
