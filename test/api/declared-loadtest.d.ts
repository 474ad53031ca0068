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
    readonly name?: string;
    readonly duration?: number;
    readonly arrivalRate?: number;
    readonly rampTo?: number;
    readonly arrivalCount?: number;
    readonly pause?: number;
    readonly maxVusers?: number;
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
    }: Partial<LoadParameters> & {
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
}
