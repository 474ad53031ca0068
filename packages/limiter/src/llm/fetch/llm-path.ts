import type { ProtocolName } from "../answers/build-answer-reader.ts";

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

/** Finds the protocol of a request to a model; undefined for other requests. */
export function findProtocol(method: string, pathname: string): ProtocolName | undefined {
  if (method !== "POST") return undefined;
  const path = pathname.endsWith("/") ? pathname.slice(0, -1) : pathname;
  if (MESSAGE_OF_THREAD.test(path)) return undefined;
  return ENDINGS.find(([ending]) => path.endsWith(ending))?.[1];
}

/** Finds the deployment in a path of Azure, where the body need not name a model. */
export function findDeployment(pathname: string): string | undefined {
  const name = DEPLOYMENT.exec(pathname)?.[1];
  if (name === undefined) return undefined;
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // not a valid escape, so it stands for itself
  }
}
