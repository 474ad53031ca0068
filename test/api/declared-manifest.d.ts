// Made by `npm run declare`.

declare module "declared/zae-limiter/manifest" {
  import {
    Repository,
    ZaeLimiterError,
    DeclaredLimits,
    ValidationError,
    PendingApply,
    ProvisionerState,
    Entity,
    DeclaredLevel,
    DeclaredSystem,
  } from "declared/zae-limiter";
  export function applyLimits(
    repository: Repository,
    manifest: Manifest,
    options?: ApplyOptions,
  ): Promise<ApplyReport>;
  export class ApplyError extends ZaeLimiterError {
    readonly done: number;
    readonly left: readonly PlanEntry[];
    constructor(
      message: string,
      { done, left, cause }: Pick<ApplyError, "done" | "left" | "cause">,
    );
  }
  export interface ApplyOptions {
    readonly plan?: LimitsPlan;
    readonly principal?: string;
    readonly owner?: string;
    readonly onProgress?: (progress: ApplyProgress) => void;
    readonly signal?: AbortSignal;
  }
  export interface ApplyProgress {
    readonly done: number;
    readonly total: number;
    readonly entry: PlanEntry;
  }
  export interface ApplyReport {
    readonly revision: number;
    readonly created: number;
    readonly updated: number;
    readonly deleted: number;
    readonly unchanged: number;
  }
  export function exportLimits(
    repository: Repository,
    options?: ExportOptions,
  ): Promise<DeclaredLimits>;
  export interface ExportOptions {
    readonly onProgress?: (progress: ExportProgress) => void;
    readonly signal?: AbortSignal;
  }
  export interface ExportProgress {
    readonly entities: number;
    readonly levels: number;
  }
  export function buildManifest(namespace: string, declared: DeclaredLimits): object;
  export function readManifest(documents: readonly ManifestDocument[]): Manifest;
  export interface Manifest {
    readonly namespace: string;
    readonly declared: DeclaredLimits;
    readonly hash: string;
    problemAt(path: readonly string[], message: string, suggestion?: string): ManifestProblem;
  }
  export interface ManifestDocument {
    readonly file: string;
    readonly content: unknown;
    findPosition(path: readonly (string | number)[]): Position | undefined;
  }
  export interface Position {
    readonly line: number;
    readonly column: number;
  }
  export function formatProblem(problem: ManifestProblem): string;
  export class ManifestError extends ValidationError {
    readonly problems: readonly ManifestProblem[];
    constructor(problems: readonly ManifestProblem[]);
  }
  export interface ManifestProblem {
    readonly file: string;
    readonly line: number | undefined;
    readonly column: number | undefined;
    readonly path: string;
    readonly message: string;
    readonly suggestion: string | undefined;
  }
  export function planLimits(repository: Repository, manifest: Manifest): Promise<LimitsPlan>;
  export interface LimitsPlan {
    readonly namespace: string;
    readonly revision: number;
    readonly entries: readonly PlanEntry[];
    readonly pending: PendingApply | undefined;
    readonly owner: string | undefined;
  }
  export function diffLimits(
    declared: DeclaredLimits,
    stored: StoredLimits,
    state: ProvisionerState,
  ): readonly PlanEntry[];
  export type PlanAction = "create" | "update" | "delete" | "unchanged";
  export interface PlanEntry {
    readonly action: PlanAction;
    readonly level: "system" | "resource" | "entity" | "record";
    readonly entityId?: string;
    readonly resource?: string;
    readonly values: readonly ValueChange[];
    readonly managed: boolean;
    readonly drift: boolean;
  }
  export interface StoredEntity {
    readonly record: Entity | undefined;
    readonly resources: Readonly<Record<string, DeclaredLevel>>;
  }
  export interface StoredLimits {
    readonly system: DeclaredSystem;
    readonly resources: Readonly<Record<string, DeclaredLevel>>;
    readonly entities: Readonly<Record<string, StoredEntity>>;
  }
  export interface ValueChange {
    readonly name: string;
    readonly before: string | undefined;
    readonly after: string | undefined;
    readonly drift: boolean;
  }
}

declare module "declared/@zae-limiter/infra/manifest" {
  import { Manifest, ManifestDocument } from "declared/zae-limiter/manifest";
  export function limitsTemplate(
    { namespace, declared }: Manifest,
    {
      stack,
    }: {
      readonly stack: string;
    },
  ): LimitsTemplate;
  export interface LimitsTemplate {
    readonly AWSTemplateFormatVersion: "2010-09-09";
    readonly Description: string;
    readonly Resources: {
      readonly Limits: {
        readonly Type: "Custom::ZaeLimiterLimits";
        readonly Properties: Readonly<Record<string, unknown>> & {
          readonly Manifest: string;
        };
      };
    };
  }
  export function manifestYaml(manifest: object): string;
  export function yamlDocument(file: string, text: string): ManifestDocument;
}
