/*
 * Compiles the example of every doc comment against the built package, as a user's strict project
 * would. Each example is the body of a function, with what usually surrounds it declared.
 */
import { execFile } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import * as schema from "zae-limiter/dynamodb/schema";
import { publicApi, type PublicMember } from "./public-members.ts";

const ROOT = join(import.meta.dirname, "../..");
const WORKSHOP = join(ROOT, ".cache/tsdoc-examples");

/** What examples use without saying where it comes from. */
const SURROUNDINGS = `
import { GetItemCommand } from "@aws-sdk/client-dynamodb";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { Limit, RateLimiter } from "zae-limiter";
import type * as api from "zae-limiter";
import { folderArchive, openAggregator, runAggregator, s3Archive, parseStreamRecord, tableOptions } from "zae-limiter/aggregator";
import type { Aggregator, AuditArchive, RawStreamRecord, StreamRecord } from "zae-limiter/aggregator";
import { subscribe } from "node:diagnostics_channel";
import { CHANNELS, type EndMessage } from "zae-limiter/diagnostics";
import { instrument } from "zae-limiter/otel";
import { checkTable, DynamoRepository, leanTransport, tableDeclaration } from "zae-limiter/dynamodb";
import type { DynamoTransport, HttpAgent, ObservedTransport, RepositoryBuilder } from "zae-limiter/dynamodb";
import { yamlDocument } from "@zae-limiter/infra/manifest";
import { applyLimits, diffLimits, exportLimits, formatProblem, buildManifest, planLimits, readManifest } from "zae-limiter/manifest";
import type { Manifest, ManifestDocument, ManifestError, StoredLimits } from "zae-limiter/manifest";
import * as schema from "zae-limiter/dynamodb/schema";
import { createServer } from "node:http";
import { clientAddress, giveBackFailures, hashedId, toId, getLease, limitHandler, limitListener, rateLimitHeaders, refusalProblem } from "zae-limiter/http";
import type { HttpLimitOptions } from "zae-limiter/http";
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";
import { ChatOpenAI } from "@langchain/openai";
import { wrapEmbeddingModel, wrapLanguageModel } from "ai-7";
import { openai } from "ai-sdk-openai-4";
import { learningEstimator, METERING, modelResource, readUpstreamLimits, simpleEstimator } from "zae-limiter/llm";
import { limitEmbeddingModel, limitLanguageModel } from "zae-limiter/ai-sdk";
import { limitFetch, type LlmRequest } from "zae-limiter/openai";
import { limitMiddleware } from "zae-limiter/anthropic";
import { limitCallbacks } from "zae-limiter/langchain";
import { MemoryRepository } from "zae-limiter/memory";
import { SqliteRepository } from "zae-limiter/sqlite";
import type { SqliteDatabase, SqliteStatement } from "zae-limiter/sqlite";
import { withoutCredentials } from "zae-limiter/open";
import { expressRateLimitStore, fastifyRateLimitStore, nestThrottlerStorage } from "zae-limiter/stores";
import type { FastifyHitStore, HitStore, ThrottlerHitStorage } from "zae-limiter/stores";
import { rateLimit } from "express-rate-limit";
import fastifyRateLimit from "@fastify/rate-limit";
import { ThrottlerModule } from "@nestjs/throttler";
import { faultyRepository, ManualClock, seededRandom } from "zae-limiter/testing";
import { upgradeTable } from "@zae-limiter/upgrade";

type Receipt = Parameters<api.RepositoryPort["giveBack"]>[0];
type ConsumeRequest = Parameters<api.RepositoryPort["consume"]>[0];
declare const limiter: RateLimiter;
declare const repository: api.Repository & DynamoRepository;
declare const lease: api.Lease;
declare const request: api.AcquireRequest;
declare const refusal: api.RateLimitExceeded;
declare const state: api.ProvisionerState;
declare const receipt: Receipt;
declare const entityId: string;
declare const namespaceId: string;
declare const resources: ConsumeRequest["resources"];
declare const start: Date;
declare const clock: ManualClock & { learn(date: string | undefined): void };
declare const builder: RepositoryBuilder;
declare const database: SqliteDatabase;
declare const statement: SqliteStatement;
declare const transport: DynamoTransport & ObservedTransport;
declare const client: import("@aws-sdk/client-dynamodb").DynamoDBClient;
declare const input: import("@aws-sdk/client-dynamodb").GetItemCommandInput;
declare const agent: HttpAgent;
declare const aggregator: Aggregator;
declare const archive: AuditArchive;
declare const s3: import("@aws-sdk/client-s3").S3Client;
declare const object: import("@aws-sdk/client-s3").PutObjectCommandInput;
declare const event: { readonly Records: readonly RawStreamRecord[] };
declare const records: readonly StreamRecord[];
declare const manifest: Manifest;
declare const document: ManifestDocument;
declare const declared: api.DeclaredLimits;
declare const stored: StoredLimits;
declare const error: ManifestError;
declare const text: string;
declare const name: string;
declare const gzipped: Uint8Array;
declare const id: string;
declare const abortSignal: AbortSignal;
declare const signal: AbortSignal;
declare const TableName: string;
declare const Key: object;
declare const log: { info(text: string): void; warn(error: unknown): void };
declare const store: HitStore & FastifyHitStore;
declare const storage: ThrottlerHitStorage;
declare const app: import("express").Express & import("fastify").FastifyInstance;
declare const response: { status(code: number): { json(body: object): void }; usage: { total_tokens: number } };
declare function respond(code: number, body?: object): void;
declare function callModel(lease?: api.Lease): Promise<{ usage: { total_tokens: number } }>;
declare function openRepository(url: string): Promise<api.Repository>;
declare function stringify(value: object): string;
declare function streamAnswer(): Promise<number>;
declare function after(task: Promise<unknown>): void;
declare function countTokens(text: string): number;
type Llm = {
  metered: import("zae-limiter/llm").MeteredOptions<LlmRequest>; estimator: import("zae-limiter/llm").Estimator; response: Response;
  call: import("zae-limiter/llm").LlmCall; estimate: import("zae-limiter/llm").Estimate; usage: import("zae-limiter/llm").TokenUsage; tokens: number; log: (...values: unknown[]) => void;
};
type AiSdk = {
  middleware: import("zae-limiter/ai-sdk").LimitedLanguageModel<"v4"> & import("zae-limiter/ai-sdk").LimitedEmbeddingModel<"v4">;
  doGenerate: () => Promise<{ usage: unknown }>; doStream: () => Promise<{ stream: ReadableStream<object> }>; doEmbed: () => Promise<{ usage: unknown }>;
  params: import("zae-limiter/ai-sdk").AiSdkCall; model: import("zae-limiter/ai-sdk").AiSdkModel;
};
type LangChain = { handler: import("zae-limiter/langchain").LangChainHandler; llm: unknown; messages: unknown[][]; runId: string; token: string; indices: unknown; output: unknown };
type Schema = typeof schema & { bucket: schema.BucketRecord; nowMs: number };
type Express = typeof import("zae-limiter/express") & {
  app: import("express").Express; options: HttpLimitOptions<import("express").Request>;
};
type Http = typeof import("zae-limiter/express") & {
  options: HttpLimitOptions<any>; handler: (request: Request) => Response; listener: import("node:http").RequestListener; answer: { usage: { total_tokens: number } };
};
type Fastify = typeof import("zae-limiter/fastify") & {
  app: import("fastify").FastifyInstance; options: HttpLimitOptions<import("fastify").FastifyRequest>; handler: import("fastify").RouteHandlerMethod;
};
type Hono = typeof import("zae-limiter/hono") & {
  app: import("hono").Hono; options: HttpLimitOptions<import("hono").Context>;
};
`;

/** Names that mean something else in each folder: what its examples get as their arguments. */
const ARGUMENTS: readonly (readonly [folder: string, list: string])[] = [
  ["repository/dynamodb/items/keys", `{ ${Object.keys(schema).join(", ")} }: Schema`],
  [
    "repository/dynamodb/schema/",
    "{ bucket, consume, nowMs, parseBucketItem, parseKey, refill, retryAfter }: Schema",
  ],
  ["http/express/", "{ app, answerRefusals, limitRequests, options }: Express"],
  [
    "http/fastify/",
    "{ app, answerRefusals, handler, limiterPlugin, limitRequests, options }: Fastify",
  ],
  ["http/hono/", "{ app, answerRefusals, limitRequests, options }: Hono"],
  ["llm/ai-sdk/", "{ doEmbed, doGenerate, doStream, middleware, model, params }: AiSdk"],
  ["llm/langchain/", "{ handler, indices, llm, messages, output, runId, token }: LangChain"],
  ["llm/", "{ call, estimate, estimator, log, metered, response, tokens, usage }: Llm"],
  ["http/", "{ answer, handler, limitRequests, listener, options }: Http"],
];

it("every example compiles", async () => {
  const examples = publicApi().flatMap((member) =>
    listExamples(member).map((code) => ({ member, code })),
  );
  expect(examples.length).toBeGreaterThan(100);
  const program = [SURROUNDINGS];
  const owners = new Map<number, PublicMember>();
  for (const { member, code } of examples) {
    const line = program.join("\n").split("\n").length + 1;
    const [, list = ""] = ARGUMENTS.find(([folder]) => member.place.startsWith(folder)) ?? [];
    const body = `export async function example${owners.size}(${list}) {{\n${code}\n}}`;
    for (const [index] of body.split("\n").entries()) owners.set(line + index, member);
    program.push(body);
  }
  rmSync(WORKSHOP, { recursive: true, force: true });
  mkdirSync(WORKSHOP, { recursive: true });
  writeFileSync(join(WORKSHOP, "examples.ts"), program.join("\n"));
  writeFileSync(
    join(WORKSHOP, "tsconfig.json"),
    JSON.stringify({
      extends: "../../tsconfig.base.json",
      compilerOptions: {
        composite: false,
        noEmit: true,
        noUnusedLocals: false,
        noUnusedParameters: false,
        // Vendors declare more than compiles here; test/package checks our own declarations.
        skipLibCheck: true,
      },
      files: ["examples.ts"],
    }),
  );
  expect((await faults()).map((line) => where(line, owners))).toEqual([]);
}, 60_000);

/** The examples of a comment, without the comment's own signs. */
function listExamples({ comment }: PublicMember): readonly string[] {
  const text = comment.replace(/^\/\*\*/, "").replace(/\*\/$/, "");
  const plain = text
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, ""))
    .join("\n");
  return plain
    .split("@example")
    .slice(1)
    .map((example) => example.split(/^@\w+/m)[0]!.trim());
}

async function faults(): Promise<readonly string[]> {
  const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
  const lines = await promisify(execFile)(process.execPath, [
    compiler,
    "-p",
    WORKSHOP,
    "--pretty",
    "false",
  ])
    .then(({ stdout }) => stdout)
    .catch((error: Error & { readonly stdout?: string }) => error.stdout || error.message);
  return lines.split("\n").filter((line) => line.trim() !== "");
}

/** An error of the compiler with the name of the member whose example it is about. */
function where(line: string, owners: ReadonlyMap<number, PublicMember>): string {
  const [, at = "0", what = line] = /examples\.ts\((\d+),\d+\): (.*)$/.exec(line) ?? [];
  const owner = owners.get(Number(at));
  return owner === undefined ? line : `${owner.name} (${owner.place}): ${what}`;
}
