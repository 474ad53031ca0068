/** What every backend may import: the core, and what all repositories share. */
const SHARED = ["core", "core/bucket", "repository"];
/**
 * The class that puts the public surface on top of a backend's store; nothing else of management.
 */
export const SURFACE = "repository/management";

/**
 * Which folders each folder may import from, besides itself, from the inside out. Adapters do not
 * know each other; within DynamoDB, imports point down the list of its rooms. Files directly under
 * `src` put everything together and may import anything.
 */
export const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: [],
  "core/bucket": ["core"],
  repository: ["core", "core/bucket"],
  "repository/management": SHARED,
  "repository/memory": [...SHARED, SURFACE],
  "repository/sqlite/database": SHARED,
  "repository/sqlite/transactions": [...SHARED, "repository/sqlite/database"],
  "repository/sqlite": [
    ...SHARED,
    SURFACE,
    "repository/sqlite/database",
    "repository/sqlite/transactions",
  ],
  ...rooms("repository/dynamodb", [
    "transport",
    "transport/lean",
    "table",
    "opening",
    "items",
    "cache",
    "write",
    "shards",
    "acquire",
  ]),
  ...aggregatorRooms("repository/dynamodb", ["usage", "shards", "archive"], "runner"),
  // What packages/upgrade needs to rewrite whole tables: every item, and no bucket's decisions.
  "repository/dynamodb/internals": [
    ...SHARED,
    ...["", "/transport", "/table", "/items"].map((room) => `repository/dynamodb${room}`),
  ],
  // What readers of the table and its stream need: keys, buckets and records of the stream.
  "repository/dynamodb/schema": [
    ...SHARED,
    ...["transport", "table", "items", "aggregator"].map((room) => `repository/dynamodb/${room}`),
  ],
  // What the limiter publishes about its calls; subscribers need nothing else.
  diagnostics: ["core", "core/bucket", "llm/tokens"],
  otel: ["core", "core/bucket", "repository", "diagnostics"],
  limiter: [...SHARED, "diagnostics"],
  // Warnings that a process emits once, of HTTP and of LLM calls.
  warnings: ["core", "repository"],
  // HTTP: headers and ids first, then the life of a request, then each framework.
  "http/headers": ["core", "core/bucket"],
  "http/identity": ["core", "repository", "warnings"],
  http: [...SHARED, "limiter", "warnings", "http/headers", "http/identity"],
  ...Object.fromEntries(
    ["express", "fastify", "hono"].map((framework) => [
      `http/${framework}`,
      [...SHARED, "limiter", "http", "http/headers"],
    ]),
  ),
  // This library as the store of other middlewares.
  stores: [...SHARED, "limiter", "http/identity"],
  // LLM calls: what is counted, estimated and read, then the life of a call, then each client.
  "llm/tokens": ["core"],
  "llm/estimating": ["core", "warnings", "llm/tokens"],
  "llm/answers/bytes": [],
  "llm/answers": ["core", "llm/tokens", "llm/answers/bytes"],
  "llm/upstream": [...SHARED, "limiter", "warnings"],
  llm: [
    ...SHARED,
    "diagnostics",
    "limiter",
    "warnings",
    ...["tokens", "estimating", "answers", "upstream"].map((room) => `llm/${room}`),
  ],
  "llm/fetch": [
    ...SHARED,
    "limiter",
    "http",
    "warnings",
    "llm",
    ...["tokens", "estimating", "answers"].map((room) => `llm/${room}`),
  ],
  ...Object.fromEntries(
    ["ai-sdk", "openai", "anthropic", "langchain"].map((client) => [
      `llm/${client}`,
      [
        ...SHARED,
        "limiter",
        "llm",
        ...["tokens", "estimating", "answers", "fetch"].map((room) => `llm/${room}`),
      ],
    ]),
  ),
  // Declared limits: they know repositories by their public surface only.
  manifest: SHARED,
  // What the author of a backend needs.
  backend: [...SHARED, SURFACE],
  open: [
    "core",
    "repository",
    ...["memory", "sqlite", "dynamodb", "dynamodb/opening"].map((name) => `repository/${name}`),
  ],
  "testing/fakes": SHARED,
  testing: ["testing/fakes"],
};

/** The same for `packages/infra`: what differs from stack to stack, then how stacks are managed. */
export const INFRA_MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  cloudformation: [],
  // A policy may hold functions of a template.
  policies: ["cloudformation"],
  template: ["cloudformation", "policies"],
  options: ["cloudformation", "template"],
  aws: [],
  manifest: [],
  code: ["aws"],
  stack: ["template", "options", "aws", "code"],
  discovery: ["options", "aws"],
  cdk: ["cloudformation", "policies", "options"],
};

/** Rooms of one backend, each of which may import those before it; its ground floor all of them. */
function rooms(backend: string, names: readonly string[]): Record<string, readonly string[]> {
  const paths = names.map((name) => `${backend}/${name}`);
  const below = paths.map((path, index) => [path, [...SHARED, ...paths.slice(0, index)]] as const);
  return { ...Object.fromEntries(below), [backend]: [...SHARED, SURFACE, ...paths] };
}

/**
 * The aggregator stands on top of a backend. Its parts know nothing of each other: each sees only
 * the records, which lie beside the class that puts the parts together.
 */
function aggregatorRooms(
  backend: string,
  parts: readonly string[],
  runner: string,
): Record<string, readonly string[]> {
  const beneath = [
    ...SHARED,
    backend,
    ...["opening", "transport", "table", "items", "cache", "write", "shards"].map(
      (name) => `${backend}/${name}`,
    ),
  ];
  const top = `${backend}/aggregator`;
  const partRooms = parts.map((part) => `${top}/${part}`);
  return {
    ...Object.fromEntries(partRooms.map((room) => [room, [...beneath, top]])),
    [top]: [...beneath, ...partRooms, `${top}/${runner}`],
    [`${top}/${runner}`]: [...beneath, ...partRooms, top],
  };
}
