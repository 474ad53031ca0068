/*
 * Holds what is built to what was declared. Compiled by `tsc -b`; nothing here runs.
 *
 * Every declared export must exist. Values, and instances of classes, must be usable as what was
 * declared. Models go both ways: a field that is missing or optional on either side is found. To
 * add a backend, add its module to the list at the end.
 */
import { expectTypeOf } from "vitest";
import type * as declared from "declared/zae-limiter";
import type * as declaredAggregator from "declared/zae-limiter/aggregator";
import type * as declaredDiagnostics from "declared/zae-limiter/diagnostics";
import type * as declaredDynamo from "declared/zae-limiter/dynamodb";
import type * as declaredExpress from "declared/zae-limiter/express";
import type * as declaredFastify from "declared/zae-limiter/fastify";
import type * as declaredHono from "declared/zae-limiter/hono";
import type * as declaredHttp from "declared/zae-limiter/http";
import type * as declaredLlm from "declared/zae-limiter/llm";
import type * as declaredAiSdk from "declared/zae-limiter/ai-sdk";
import type * as declaredOpenai from "declared/zae-limiter/openai";
import type * as declaredAnthropic from "declared/zae-limiter/anthropic";
import type * as declaredLangchain from "declared/zae-limiter/langchain";
import type * as declaredManifest from "declared/zae-limiter/manifest";
import type * as declaredMemory from "declared/zae-limiter/memory";
import type * as declaredOpen from "declared/zae-limiter/open";
import type * as declaredOtel from "declared/zae-limiter/otel";
import type * as declaredSqlite from "declared/zae-limiter/sqlite";
import type * as declaredStores from "declared/zae-limiter/stores";
import type * as declaredTesting from "declared/zae-limiter/testing";
import type * as declaredUpgrade from "declared/@zae-limiter/upgrade";
import type * as declaredContract from "declared/@zae-limiter/contract";
import type * as declaredInfra from "declared/@zae-limiter/infra";
import type * as declaredYaml from "declared/@zae-limiter/infra/manifest";
import type * as declaredCdk from "declared/@zae-limiter/infra/cdk";
import type * as builtContract from "@zae-limiter/contract";
import type * as builtInfra from "@zae-limiter/infra";
import type * as builtYaml from "@zae-limiter/infra/manifest";
import type * as builtCdk from "@zae-limiter/infra/cdk";
import type * as built from "zae-limiter";
import type * as builtAggregator from "zae-limiter/aggregator";
import type * as builtDiagnostics from "zae-limiter/diagnostics";
import type * as builtDynamo from "zae-limiter/dynamodb";
import type * as builtExpress from "zae-limiter/express";
import type * as builtFastify from "zae-limiter/fastify";
import type * as builtHono from "zae-limiter/hono";
import type * as builtHttp from "zae-limiter/http";
import type * as builtLlm from "zae-limiter/llm";
import type * as builtAiSdk from "zae-limiter/ai-sdk";
import type * as builtOpenai from "zae-limiter/openai";
import type * as builtAnthropic from "zae-limiter/anthropic";
import type * as builtLangchain from "zae-limiter/langchain";
import type * as builtManifest from "zae-limiter/manifest";
import type * as builtMemory from "zae-limiter/memory";
import type * as builtOpen from "zae-limiter/open";
import type * as builtOtel from "zae-limiter/otel";
import type * as builtSqlite from "zae-limiter/sqlite";
import type * as builtStores from "zae-limiter/stores";
import type * as builtTesting from "zae-limiter/testing";
import type * as builtUpgrade from "@zae-limiter/upgrade";

declare module "declared/zae-limiter" {
  /** The declaration leaves the port's members open; they are whatever was built. */
  interface RepositoryPort extends built.RepositoryPort {}
}

type Callable = (...values: never[]) => unknown;
type InstanceOf<C> = C extends { readonly prototype: infer Instance } ? Instance : never;

/** The declared exports that are missing, or cannot be used as declared. */
type Broken<Declared, Built> = {
  [Name in keyof Declared]: Name extends keyof Built
    ? Declared[Name] extends Callable
      ? Unless<Built[Name], Declared[Name], Name>
      : Declared[Name] extends { readonly prototype: unknown }
        ? Unless<InstanceOf<Built[Name]>, InstanceOf<Declared[Name]>, Name>
        : Unless<Built[Name], Declared[Name], Name>
    : Name;
}[keyof Declared];
type Unless<From, To, Name> = [From] extends [To] ? never : Name;

/** The names of models that differ in either direction; a missing option shows in the keys only. */
type Different<Pairs extends Record<string, readonly [unknown, unknown]>> = {
  [Name in keyof Pairs]: Both<Pairs[Name][0]> extends Both<Pairs[Name][1]>
    ? Both<Pairs[Name][1]> extends Both<Pairs[Name][0]>
      ? never
      : Name
    : Name;
}[keyof Pairs];
type Both<Model> = readonly [Model, keyof Model];

interface Models extends Record<string, readonly [unknown, unknown]> {
  Limit: [declared.Limit, built.Limit];
  Amounts: [declared.Amounts, built.Amounts];
  OnUnavailable: [declared.OnUnavailable, built.OnUnavailable];
  ConfigSource: [declared.ConfigSource, built.ConfigSource];
  UsageWindow: [declared.UsageWindow, built.UsageWindow];
  Page: [declared.Page<string>, built.Page<string>];
  Entity: [declared.Entity, built.Entity];
  LimitStatus: [declared.LimitStatus, built.LimitStatus];
  BucketState: [declared.BucketState, built.BucketState];
  UsageSnapshot: [declared.UsageSnapshot, built.UsageSnapshot];
  UsageSummary: [declared.UsageSummary, built.UsageSummary];
  UsagePage: [declared.UsagePage, built.UsagePage];
  EntityCapacity: [declared.EntityCapacity, built.EntityCapacity];
  ResourceCapacity: [declared.ResourceCapacity, built.ResourceCapacity];
  AuditAction: [declared.AuditAction, built.AuditAction];
  AuditEvent: [declared.AuditEvent, built.AuditEvent];
  NamespaceStatus: [declared.NamespaceStatus, built.NamespaceStatus];
  NamespaceInfo: [declared.NamespaceInfo, built.NamespaceInfo];
  ResolvedLimits: [declared.ResolvedLimits, built.ResolvedLimits];
  StoredLevel: [declared.StoredLevel, built.StoredLevel];
  SystemDefaults: [declared.SystemDefaults, built.SystemDefaults];
  CacheStats: [declared.CacheStats, built.CacheStats];
  ProvisionerState: [declared.ProvisionerState, built.ProvisionerState];
  VersionRecord: [declared.VersionRecord, built.VersionRecord];
  BackendCapabilities: [declared.BackendCapabilities, built.BackendCapabilities];
  RepositoryStatistics: [declared.RepositoryStatistics, built.RepositoryStatistics];
  AcquireRequest: [declared.AcquireRequest, built.AcquireRequest];
  ChargeRequest: [declared.ChargeRequest, built.ChargeRequest];
  LeaseOfResource: [declared.LeaseOfResource, built.LeaseOfResource];
  Availability: [declared.Availability, built.Availability];
  RateLimitExceededJson: [declared.RateLimitExceededJson, built.RateLimitExceededJson];
  Clock: [declared.Clock, built.Clock];
  Random: [declared.Random, built.Random];
  RepositoryOptions: [declared.RepositoryOptions, built.RepositoryOptions];
  UsageQuery: [declared.UsageQuery, built.UsageQuery];
  Repository: [declared.Repository, built.Repository];
  SqliteOptions: [declaredSqlite.SqliteOptions, builtSqlite.SqliteOptions];
  SqliteDatabase: [declaredSqlite.SqliteDatabase, builtSqlite.SqliteDatabase];
  SqliteStatement: [declaredSqlite.SqliteStatement, builtSqlite.SqliteStatement];
  DynamoClient: [declaredDynamo.DynamoClient, builtDynamo.DynamoClient];
  DynamoTransport: [declaredDynamo.DynamoTransport, builtDynamo.DynamoTransport];
  DynamoOptions: [declaredDynamo.DynamoOptions, builtDynamo.DynamoOptions];
  StackOptions: [declaredDynamo.StackOptions, builtDynamo.StackOptions];
  TableDeclaration: [declaredDynamo.TableDeclaration, builtDynamo.TableDeclaration];
  ObservedTransport: [declaredDynamo.ObservedTransport, builtDynamo.ObservedTransport];
  AwsCredentials: [declaredDynamo.AwsCredentials, builtDynamo.AwsCredentials];
  HttpAgent: [declaredDynamo.HttpAgent, builtDynamo.HttpAgent];
  LeanTransportOptions: [declaredDynamo.LeanTransportOptions, builtDynamo.LeanTransportOptions];
  RunnerProblem: [declaredAggregator.RunnerProblem, builtAggregator.RunnerProblem];
  RunnerProgress: [declaredAggregator.RunnerProgress, builtAggregator.RunnerProgress];
  RunnerReport: [declaredAggregator.RunnerReport, builtAggregator.RunnerReport];
  RawStreamRecord: [declaredAggregator.RawStreamRecord, builtAggregator.RawStreamRecord];
  AuditArchive: [declaredAggregator.AuditArchive, builtAggregator.AuditArchive];
  S3ArchiveClient: [declaredAggregator.S3ArchiveClient, builtAggregator.S3ArchiveClient];
  S3ArchiveOptions: [declaredAggregator.S3ArchiveOptions, builtAggregator.S3ArchiveOptions];
  AggregatorOptions: [declaredAggregator.AggregatorOptions, builtAggregator.AggregatorOptions];
  RecordFailure: [declaredAggregator.RecordFailure, builtAggregator.RecordFailure];
  BatchReport: [declaredAggregator.BatchReport, builtAggregator.BatchReport];
  TokenUsage: [declaredLlm.TokenUsage, builtLlm.TokenUsage];
  TokenKind: [declaredLlm.TokenKind, builtLlm.TokenKind];
  Metering: [declaredLlm.Metering, builtLlm.Metering];
  LlmCall: [declaredLlm.LlmCall, builtLlm.LlmCall];
  Estimate: [declaredLlm.Estimate, builtLlm.Estimate];
  Estimator: [declaredLlm.Estimator, builtLlm.Estimator];
  SimpleEstimatorOptions: [declaredLlm.SimpleEstimatorOptions, builtLlm.SimpleEstimatorOptions];
  LearningEstimatorOptions: [
    declaredLlm.LearningEstimatorOptions,
    builtLlm.LearningEstimatorOptions,
  ];
  MeteredRecord: [declaredLlm.MeteredRecord, builtLlm.MeteredRecord];
  UpstreamLimit: [declaredLlm.UpstreamLimit, builtLlm.UpstreamLimit];
  UpstreamLimits: [declaredLlm.UpstreamLimits, builtLlm.UpstreamLimits];
  UpstreamMirror: [declaredLlm.UpstreamMirror, builtLlm.UpstreamMirror];
  MeteredOptions: [declaredLlm.MeteredOptions<string>, builtLlm.MeteredOptions<string>];
  AiSdkModel: [declaredAiSdk.AiSdkModel, builtAiSdk.AiSdkModel];
  AiSdkCall: [declaredAiSdk.AiSdkCall, builtAiSdk.AiSdkCall];
  LimitedLanguageModel: [
    declaredAiSdk.LimitedLanguageModel<"v4">,
    builtAiSdk.LimitedLanguageModel<"v4">,
  ];
  LimitedEmbeddingModel: [
    declaredAiSdk.LimitedEmbeddingModel<"v4">,
    builtAiSdk.LimitedEmbeddingModel<"v4">,
  ];
  LlmRequest: [declaredOpenai.LlmRequest, builtOpenai.LlmRequest];
  FetchOptions: [declaredOpenai.FetchOptions, builtOpenai.FetchOptions];
  AnthropicMiddleware: [declaredAnthropic.AnthropicMiddleware, builtAnthropic.AnthropicMiddleware];
  LangChainCall: [declaredLangchain.LangChainCall, builtLangchain.LangChainCall];
  LangChainHandler: [declaredLangchain.LangChainHandler, builtLangchain.LangChainHandler];
  MeteredMessage: [declaredDiagnostics.MeteredMessage, builtDiagnostics.MeteredMessage];
  StreamMessage: [declaredDiagnostics.StreamMessage, builtDiagnostics.StreamMessage];
  AcquireMessage: [declaredDiagnostics.AcquireMessage, builtDiagnostics.AcquireMessage];
  EndedAmounts: [declaredDiagnostics.EndedAmounts, builtDiagnostics.EndedAmounts];
  EndMessage: [declaredDiagnostics.EndMessage, builtDiagnostics.EndMessage];
  ChargeMessage: [declaredDiagnostics.ChargeMessage, builtDiagnostics.ChargeMessage];
  OtelOptions: [declaredOtel.OtelOptions, builtOtel.OtelOptions];
  Fault: [declaredTesting.Fault, builtTesting.Fault];
  StoreOptions: [declaredStores.StoreOptions, builtStores.StoreOptions];
  HitInfo: [declaredStores.HitInfo, builtStores.HitInfo];
  HitStoreInit: [declaredStores.HitStoreInit, builtStores.HitStoreInit];
  HitStore: [declaredStores.HitStore, builtStores.HitStore];
  FastifyHitStore: [declaredStores.FastifyHitStore, builtStores.FastifyHitStore];
  ThrottlerHit: [declaredStores.ThrottlerHit, builtStores.ThrottlerHit];
  ThrottlerHitStorage: [declaredStores.ThrottlerHitStorage, builtStores.ThrottlerHitStorage];
  TableCheck: [declaredDynamo.TableCheck, builtDynamo.TableCheck];
  UpgradeOptions: [declaredUpgrade.UpgradeOptions, builtUpgrade.UpgradeOptions];
  UpgradeReport: [declaredUpgrade.UpgradeReport, builtUpgrade.UpgradeReport];
  DeclaredLimits: [declared.DeclaredLimits, built.DeclaredLimits];
  LevelName: [declared.LevelName, built.LevelName];
  Manifest: [declaredManifest.Manifest, builtManifest.Manifest];
  ManifestDocument: [declaredManifest.ManifestDocument, builtManifest.ManifestDocument];
  StoredLimits: [declaredManifest.StoredLimits, builtManifest.StoredLimits];
  LimitsPlan: [declaredManifest.LimitsPlan, builtManifest.LimitsPlan];
  ApplyOptions: [declaredManifest.ApplyOptions, builtManifest.ApplyOptions];
  ApplyReport: [declaredManifest.ApplyReport, builtManifest.ApplyReport];
  ExportOptions: [declaredManifest.ExportOptions, builtManifest.ExportOptions];
  StackPlace: [declaredInfra.StackPlace, builtInfra.StackPlace];
  DeployOptions: [declaredInfra.DeployOptions, builtInfra.DeployOptions];
  DeployReport: [declaredInfra.DeployReport, builtInfra.DeployReport];
  DeleteOptions: [declaredInfra.DeleteOptions, builtInfra.DeleteOptions];
  DeleteReport: [declaredInfra.DeleteReport, builtInfra.DeleteReport];
  StackSummary: [declaredInfra.StackSummary, builtInfra.StackSummary];
  StatusOptions: [declaredInfra.StatusOptions, builtInfra.StatusOptions];
  LambdaPackage: [declaredInfra.LambdaPackage, builtInfra.LambdaPackage];
  AggregatorResources: [declaredInfra.AggregatorResources, builtInfra.AggregatorResources];
  PolicyDocument: [declaredInfra.PolicyDocument, builtInfra.PolicyDocument];
  ZaeLimiterProps: [declaredCdk.ZaeLimiterProps, builtCdk.ZaeLimiterProps];
}

/**
 * An interface with an index signature would swallow every difference, so the names are listed
 * again without it.
 */
type Named = { [Name in keyof Models as string extends Name ? never : Name]: Models[Name] };

// Instances of classes with private members cannot be made from outside, so these go one way.
expectTypeOf<built.Lease>().toExtend<declared.Lease>();
expectTypeOf<built.AcquireResult>().toExtend<declared.AcquireResult>();
expectTypeOf<declared.RateLimiterOptions>().toExtend<built.RateLimiterOptions>();
expectTypeOf<ConstructorParameters<typeof declared.RateLimiter>>().toExtend<
  ConstructorParameters<typeof built.RateLimiter>
>();
expectTypeOf<ConstructorParameters<typeof declaredMemory.MemoryRepository>>().toExtend<
  ConstructorParameters<typeof builtMemory.MemoryRepository>
>();
expectTypeOf<Parameters<typeof declaredDynamo.DynamoRepository.open>>().toExtend<
  Parameters<typeof builtDynamo.DynamoRepository.open>
>();
expectTypeOf<keyof declaredHttp.HttpLimitOptions<Request>>().toEqualTypeOf<
  keyof builtHttp.HttpLimitOptions<Request>
>();
expectTypeOf<keyof declaredFastify.FastifyOptions>().toEqualTypeOf<
  keyof builtFastify.FastifyOptions
>();
expectTypeOf<keyof declaredHono.HonoOptions>().toEqualTypeOf<keyof builtHono.HonoOptions>();
expectTypeOf<declaredHttp.HeaderOptions>().toEqualTypeOf<builtHttp.HeaderOptions>();
expectTypeOf<builtHttp.RefusalProblem>().toEqualTypeOf<declaredHttp.RefusalProblem>();
expectTypeOf<builtDynamo.RepositoryBuilder>().toExtend<declaredDynamo.RepositoryBuilder>();
expectTypeOf<Parameters<typeof declaredSqlite.SqliteRepository.open>>().toExtend<
  Parameters<typeof builtSqlite.SqliteRepository.open>
>();

expectTypeOf<ConstructorParameters<typeof declaredCdk.ZaeLimiter>>().toExtend<
  ConstructorParameters<typeof builtCdk.ZaeLimiter>
>();

/** The compiler names whatever does not satisfy it. */
type None<Names extends never> = Names;

export type Surface = [
  None<Different<Named>>,
  None<Broken<typeof declared, typeof built>>,
  None<Broken<typeof declaredAggregator, typeof builtAggregator>>,
  None<Broken<typeof declaredDynamo, typeof builtDynamo>>,
  None<Broken<typeof declaredMemory, typeof builtMemory>>,
  None<Broken<typeof declaredOpen, typeof builtOpen>>,
  None<Broken<typeof declaredSqlite, typeof builtSqlite>>,
  None<Broken<typeof declaredTesting, typeof builtTesting>>,
  None<Broken<typeof declaredHttp, typeof builtHttp>>,
  None<Broken<typeof declaredExpress, typeof builtExpress>>,
  None<Broken<typeof declaredFastify, typeof builtFastify>>,
  None<Broken<typeof declaredHono, typeof builtHono>>,
  None<Broken<typeof declaredDiagnostics, typeof builtDiagnostics>>,
  None<Broken<typeof declaredOtel, typeof builtOtel>>,
  None<Broken<typeof declaredStores, typeof builtStores>>,
  None<Broken<typeof declaredLlm, typeof builtLlm>>,
  None<Broken<typeof declaredAiSdk, typeof builtAiSdk>>,
  None<Broken<typeof declaredOpenai, typeof builtOpenai>>,
  None<Broken<typeof declaredAnthropic, typeof builtAnthropic>>,
  None<Broken<typeof declaredLangchain, typeof builtLangchain>>,
  None<Broken<typeof declaredUpgrade, typeof builtUpgrade>>,
  None<Broken<typeof declaredContract, typeof builtContract>>,
  None<Broken<typeof declaredInfra, typeof builtInfra>>,
  None<Broken<typeof declaredManifest, typeof builtManifest>>,
  None<Broken<typeof declaredYaml, typeof builtYaml>>,
  None<Broken<typeof declaredCdk, typeof builtCdk>>,
  // And nothing is exported that was not declared.
  None<Exclude<keyof typeof builtManifest, keyof typeof declaredManifest>>,
  None<Exclude<keyof typeof builtInfra, keyof typeof declaredInfra>>,
  None<Exclude<keyof typeof builtHttp, keyof typeof declaredHttp>>,
  None<Exclude<keyof typeof builtFastify, keyof typeof declaredFastify>>,
  None<Exclude<keyof typeof builtHono, keyof typeof declaredHono>>,
  None<Exclude<keyof typeof builtDiagnostics, keyof typeof declaredDiagnostics>>,
  None<Exclude<keyof typeof builtOtel, keyof typeof declaredOtel>>,
  None<Exclude<keyof typeof builtStores, keyof typeof declaredStores>>,
];
