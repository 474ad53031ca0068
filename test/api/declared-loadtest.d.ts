// Made by `npm run declare`.

declare module "declared/artillery-engine-zae-limiter" {
  import { Lease, RateLimiter } from "zae-limiter";
  import { Amounts, Repository, AcquireRequest, LimitStatus } from "declared/zae-limiter";
  export {};
  export interface EngineOptions {
    readonly ledger?: string;
    readonly namespace?: string;
    readonly setup?: readonly Step[];
  }
  export interface MetricEmitter {
    emit(event: string, ...values: readonly unknown[]): unknown;
  }
  export interface Phase {
    readonly duration?: number;
    readonly arrivalRate?: number;
    readonly pause?: number;
  }
  export interface Script {
    readonly config: {
      readonly target: string;
      readonly engines: {
        readonly "zae-limiter": EngineOptions;
      };
      readonly processor: string;
      readonly phases: readonly Phase[];
      readonly variables: Readonly<Record<string, unknown>>;
    };
    readonly scenarios: readonly ScriptScenario[];
  }
  export interface ScriptScenario {
    readonly name: string;
    readonly weight?: number;
    readonly engine: string;
    readonly flow: readonly Step[];
  }
  export type Step = Readonly<Record<string, unknown>>;
  export interface UserContext {
    readonly vars: Record<string, unknown>;
    readonly [name: string]: unknown;
  }
  export class ZaeLimiterEngine {
    constructor(script: EngineScript, _emitter: MetricEmitter, tools: EngineTools);
    init(): Promise<void>;
    createScenario(
      spec: {
        readonly flow: readonly Step[];
      },
      emitter: MetricEmitter,
    ): RunUser;
    close(): Promise<void>;
  }
  export interface EngineScript {
    readonly config: {
      readonly target?: string;
      readonly engines?: {
        readonly "zae-limiter"?: EngineOptions;
      };
      readonly processor?: Readonly<Record<string, unknown>> | string;
      readonly variables?: Readonly<Record<string, unknown>>;
    };
    readonly scenarios?: readonly {
      readonly engine?: string;
      readonly flow?: unknown;
    }[];
  }
  export interface EngineTools {
    template(value: unknown, context: UserContext): unknown;
  }
  export type RunUser = (
    context: UserContext,
    callback: (error: unknown, context: UserContext) => void,
  ) => void;
  export const LAG_METRIC = "zae.generator.lag_us";
  export type ManagementCall = (typeof MANAGEMENT_CALLS)[number];
  export interface SessionLease extends Pick<Lease, "settle" | "adjust" | "release" | "degraded"> {
    consume(amounts: Amounts): Promise<boolean>;
    resourceLease(resource: string): Pick<Lease, "settle" | "adjust" | "release">;
    giveBack(): void;
    abandon(): void;
  }
  export class RateLimiterSession {
    readonly repository: Repository;
    constructor({ repository, emitter, limiter, ledger }: SessionOptions);
    acquire<T>(
      call: SessionCall,
      work?: (lease: SessionLease) => T | PromiseLike<T>,
    ): Promise<T | undefined>;
    available(entityId: string, resource: string, name?: string): Promise<Record<string, number>>;
    manage<Call extends ManagementCall>(
      call: Call,
      ...values: Parameters<Repository[Call]>
    ): Promise<Awaited<ReturnType<Repository[Call]>>>;
    reportError(error: unknown): void;
  }
  export interface SessionCall extends AcquireRequest {
    readonly name?: string;
    readonly settle?: Amounts;
  }
  export interface SessionOptions {
    readonly repository: Repository;
    readonly emitter: MetricEmitter;
    readonly limiter?: RateLimiter;
    readonly ledger?: Ledger | undefined;
  }
  export class Ledger {
    constructor({ folder, repository, store, startedAt }: LedgerOptions);
    now(): number;
    enter(): void;
    leave(): void;
    newLease(): number;
    noteGrant(
      grant: Pick<GrantRecord, "lease" | "sent" | "answered">,
      taken: Readonly<Record<string, Amounts>>,
      statuses: readonly LimitStatus[],
    ): ReadonlyMap<string, readonly number[]>;
    noteEnd(end: Omit<EndRecord, "kind">): void;
    noteDoubt(entityId: string): void;
    noteChange(call: string, sent: number): void;
    flush(): void;
    close(): void;
  }
  export interface LedgerOptions {
    readonly folder: string;
    readonly repository: Pick<Repository, "clock" | "namespaceName">;
    readonly store: string;
    readonly startedAt?: number;
  }
  export function spiker({
    probability,
    burstSeconds,
    seed,
  }?: SpikerOptions): (entityId: string, atSeconds: number) => boolean;
  export function uniform(options: EntityOptions): EntityPicker;
  export function whale({
    share,
    entityId,
    others,
    seed,
  }: {
    readonly share?: number;
    readonly entityId?: string;
    readonly others: EntityPicker;
    readonly seed?: number;
  }): EntityPicker;
  export function zipf({
    exponent,
    ...options
  }: EntityOptions & {
    readonly exponent?: number;
  }): EntityPicker;
  export interface EntityOptions {
    readonly count: number;
    readonly prefix?: string;
    readonly seed?: number;
  }
  export type EntityPicker = () => string;
  export interface SpikerOptions {
    readonly probability?: number;
    readonly burstSeconds?: number;
    readonly seed?: number;
  }
  export function constant(options: ShapeOptions): readonly Phase[];
  export function countArrivals(phases: readonly Phase[], workers?: number): number;
  export function daily(options: ShapeOptions): readonly Phase[];
  export function ramp(options: ShapeOptions): readonly Phase[];
  export const SHAPES: Readonly<Record<string, (options: ShapeOptions) => readonly Phase[]>>;
  export function spike(options: ShapeOptions): readonly Phase[];
  export function steps({
    count,
    ...options
  }: ShapeOptions & {
    readonly count?: number;
  }): readonly Phase[];
  export interface ShapeOptions {
    readonly durationSeconds: number;
    readonly rate: number;
  }
  export function renderScript(
    name: string,
    {
      target,
      namespace,
      ...load
    }: LoadOptions & {
      readonly target: string;
      readonly namespace?: string;
    },
  ): Script;
  export const SCENARIOS: Readonly<Record<string, Scenario>>;
  export interface LoadParameters {
    readonly durationSeconds: number;
    readonly rate: number;
    readonly users: number;
  }
  export interface Scenario {
    readonly description: string;
    readonly file: URL;
    readonly defaults: LoadParameters;
    readonly setup: readonly Step[];
    readonly users: readonly Pick<ScriptScenario, "name" | "weight" | "flow">[];
    readonly variables?: Readonly<Record<string, unknown>>;
    readonly buildPhases?: (parameters: LoadParameters) => readonly Phase[];
  }
  export function verifyLedger(
    folder: string,
    repository?: Repository,
    { waitUpToMs }?: VerifyOptions,
  ): Promise<LedgerReport>;
  export interface LedgerReport {
    readonly passed: boolean;
    readonly buckets: number;
    readonly grants: number;
    readonly closest: number;
    readonly problems: readonly string[];
    readonly notes: readonly string[];
  }
  export interface VerifyOptions {
    readonly waitUpToMs?: number;
  }
  const MANAGEMENT_CALLS: readonly [
    "createEntity",
    "ensureEntity",
    "updateEntity",
    "deleteEntity",
    "getEntity",
    "getChildren",
    "listEntities",
    "setLimits",
    "getLimits",
    "deleteLimits",
    "resolveLimits",
    "setResourceDefaults",
    "getResourceDefaults",
    "deleteResourceDefaults",
    "listResourcesWithDefaults",
    "setSystemDefaults",
    "getSystemDefaults",
    "deleteSystemDefaults",
    "getBuckets",
    "getResourceCapacity",
    "getUsageSnapshots",
    "getUsageSummary",
    "getAuditEvents",
  ];
  interface GrantRecord {
    readonly kind: "grant";
    readonly lease: number;
    readonly buckets: readonly number[];
    readonly amounts: Amounts;
    readonly sent: number;
    readonly answered: number;
  }
  interface EndRecord {
    readonly kind: "end";
    readonly lease: number;
    readonly buckets: readonly number[];
    readonly deltas: Amounts;
    readonly sent: number;
    readonly answered?: number | undefined;
  }
  type LoadOptions = {
    readonly [Name in keyof LoadParameters]?: LoadParameters[Name] | undefined;
  };
}

declare module "declared/artillery-engine-zae-limiter/run" {
  import { LedgerReport, Script } from "declared/artillery-engine-zae-limiter";
  import { ZaeLimiterError, Repository } from "declared/zae-limiter";
  export function findArtillery(folder: string, nodeVersion?: string): Artillery;
  export interface Artillery {
    readonly version: string;
    readonly program: string;
  }
  export function findHighestRate<T extends Trial>(
    { startRate, mostRate, signal }: RateSearch,
    tryRate: (rate: number) => Promise<T>,
  ): Promise<{
    readonly rate: number;
    readonly trials: readonly T[];
  }>;
  export interface RateSearch {
    readonly startRate: number;
    readonly mostRate: number;
    readonly signal?: AbortSignal;
  }
  export interface Trial {
    readonly rate: number;
    readonly passed: boolean;
  }
  export interface Generator {
    readonly plannedArrivals: number;
    readonly createdArrivals: number;
    readonly plannedSeconds: number;
    readonly tookSeconds: number;
    readonly lagP99Us: number | undefined;
    readonly problems: readonly string[];
  }
  export interface CallRow extends Partial<Latency> {
    readonly name: string;
    readonly count: number;
    readonly refused?: number;
  }
  export interface Latency {
    readonly p50Us: number;
    readonly p95Us: number;
    readonly p99Us: number;
    readonly maxUs: number;
  }
  export interface LoadReport extends RunName {
    readonly passed: boolean;
    readonly problems: readonly string[];
    readonly users: {
      readonly created: number;
      readonly completed: number;
      readonly failed: number;
    };
    readonly generator: Generator | undefined;
    readonly verification: LedgerReport | undefined;
    readonly calls: readonly CallRow[];
    readonly byName: readonly CallRow[];
    readonly errors: Readonly<Record<string, number>>;
    readonly periods: readonly PeriodRow[];
  }
  export interface PeriodRow extends Partial<Latency> {
    readonly atSeconds: number;
    readonly seconds: number;
    readonly users: number;
    readonly granted: number;
    readonly refused: number;
    readonly errors: number;
  }
  export interface RunName {
    readonly scenario: string;
    readonly target: string;
    readonly namespace?: string | undefined;
    readonly startedAt: string;
    readonly artillery: string;
    readonly interrupted: boolean;
  }
  export class LoadTestError extends ZaeLimiterError {
    constructor(message: string, options?: ErrorOptions);
  }
  export function describeVerdict({ passed, interrupted, problems }: LoadReport): string;
  export function listFacts(report: LoadReport): readonly string[];
  export function listTables(report: LoadReport): readonly ReportTable[];
  export function periodCells(row: PeriodRow): readonly (string | number | undefined)[];
  export const PERIOD_HEADERS: readonly [
    "at s",
    "users",
    "granted/s",
    "refused/s",
    "errors",
    "p50 ms",
    "p95 ms",
    "p99 ms",
    "max ms",
  ];
  export interface ReportTable {
    readonly title: string;
    readonly headers: readonly string[];
    readonly rows: readonly (readonly (string | number | undefined)[])[];
  }
  export function checkLoadTest(test: LoadTest): Script;
  export function runLoadTest(
    test: LoadTest,
    { artillery, repository, env, signal, onPeriod }: Surroundings,
  ): Promise<LoadReport>;
  export function verifyRun(
    folder: string,
    repository: Repository | undefined,
  ): Promise<LedgerReport | undefined>;
  export interface LoadTest {
    readonly scenario: string;
    readonly target: string;
    readonly durationSeconds?: number | undefined;
    readonly rate?: number | undefined;
    readonly users?: number | undefined;
    readonly p99BoundMs?: number | undefined;
    readonly output: string;
  }
  export interface Surroundings {
    readonly artillery: Artillery;
    readonly repository: Repository;
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly signal?: AbortSignal;
    readonly onPeriod?: (row: PeriodRow) => void;
  }
}
