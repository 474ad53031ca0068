/* Declared limits (ADR 020): `zae-limiter/manifest`, and what repositories gained for it. */

declare module "declared/zae-limiter" {
  export interface DeclaredLevel {
    readonly limits: readonly Limit[];
    readonly inherit: boolean;
  }
  export interface DeclaredSystem {
    readonly limits?: readonly Limit[];
    readonly onUnavailable?: OnUnavailable;
    readonly auditRetentionDays?: number;
    readonly usageRetentionDays?: number;
  }
  export interface DeclaredEntity {
    readonly parentId?: string;
    readonly cascade?: boolean;
    readonly name?: string;
    readonly metadata?: Readonly<Record<string, string>>;
    readonly resources: Readonly<Record<string, DeclaredLevel>>;
  }
  export interface DeclaredLimits {
    readonly system?: DeclaredSystem;
    readonly resources: Readonly<Record<string, DeclaredLevel>>;
    readonly entities: Readonly<Record<string, DeclaredEntity>>;
  }
  export interface PendingApply {
    readonly hash: string;
    readonly startedAt: Date;
    readonly principal?: string | undefined;
    readonly declared: DeclaredLimits;
  }
  export interface ProvisionerState {
    readonly applied?: DeclaredLimits | undefined;
    readonly pending?: PendingApply | undefined;
    readonly owner?: string | undefined;
  }
  export interface LevelName {
    readonly entityId?: string;
    readonly resource?: string;
  }
  interface By {
    readonly ifRevision?: number; // only while the state of declared limits has this revision
  }
  export interface Repository {
    getLevel(level: LevelName): Promise<StoredLevel | undefined>;
  }
  export class ApplyConflictError extends ValidationError {}
}

declare module "declared/zae-limiter/manifest" {
  import type {
    DeclaredLevel,
    DeclaredLimits,
    DeclaredSystem,
    Entity,
    PendingApply,
    ProvisionerState,
    Repository,
    ValidationError,
    ZaeLimiterError,
  } from "declared/zae-limiter";

  // Reading files.
  export interface Position {
    readonly line: number;
    readonly column: number;
  }
  export interface ManifestDocument {
    readonly file: string;
    readonly content: unknown;
    positionOf(path: readonly (string | number)[]): Position | undefined;
  }
  export interface ManifestProblem {
    readonly file: string;
    readonly line: number | undefined;
    readonly column: number | undefined;
    readonly path: string;
    readonly message: string;
    readonly suggestion: string | undefined;
  }
  export class ManifestError extends ValidationError {
    readonly problems: readonly ManifestProblem[];
  }
  export function formatProblem(problem: ManifestProblem): string;
  export interface Manifest {
    readonly namespace: string;
    readonly declared: DeclaredLimits;
    readonly hash: string;
    problemAt(path: readonly string[], message: string, suggestion?: string): ManifestProblem;
  }
  export function readManifest(documents: readonly ManifestDocument[]): Manifest;

  // Planning.
  export type PlanAction = "create" | "update" | "delete" | "unchanged";
  export interface ValueChange {
    readonly name: string;
    readonly before: string | undefined;
    readonly after: string | undefined;
    readonly drift: boolean;
  }
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
  export function diffLimits(
    declared: DeclaredLimits,
    stored: StoredLimits,
    state: ProvisionerState,
  ): readonly PlanEntry[];
  export interface LimitsPlan {
    readonly namespace: string;
    readonly revision: number;
    readonly entries: readonly PlanEntry[];
    readonly pending: PendingApply | undefined;
    readonly owner: string | undefined;
  }
  export function planLimits(repository: Repository, manifest: Manifest): Promise<LimitsPlan>;

  // Applying.
  export interface ApplyProgress {
    readonly done: number;
    readonly total: number;
    readonly entry: PlanEntry;
  }
  export interface ApplyOptions {
    readonly plan?: LimitsPlan;
    readonly principal?: string;
    readonly owner?: string;
    readonly onProgress?: (progress: ApplyProgress) => void;
    readonly signal?: AbortSignal;
  }
  export interface ApplyReport {
    readonly revision: number;
    readonly created: number;
    readonly updated: number;
    readonly deleted: number;
    readonly unchanged: number;
  }
  export class ApplyError extends ZaeLimiterError {
    readonly done: number;
    readonly left: readonly PlanEntry[];
  }
  export function applyLimits(
    repository: Repository,
    manifest: Manifest,
    options?: ApplyOptions,
  ): Promise<ApplyReport>;

  // Exporting.
  export interface ExportProgress {
    readonly entities: number;
    readonly levels: number;
  }
  export interface ExportOptions {
    readonly onProgress?: (progress: ExportProgress) => void;
    readonly signal?: AbortSignal;
  }
  export function exportLimits(
    repository: Repository,
    options?: ExportOptions,
  ): Promise<DeclaredLimits>;
  export function manifestOf(namespace: string, declared: DeclaredLimits): object;
}

declare module "declared/@zae-limiter/infra/manifest" {
  import type { Manifest, ManifestDocument } from "declared/zae-limiter/manifest";
  export interface LimitsTemplate {
    readonly AWSTemplateFormatVersion: "2010-09-09";
    readonly Description: string;
    readonly Resources: {
      readonly Limits: {
        readonly Type: "Custom::ZaeLimiterLimits";
        readonly Properties: Readonly<Record<string, unknown>>;
      };
    };
  }
  export function limitsTemplate(
    manifest: Manifest,
    options: { readonly stack: string },
  ): LimitsTemplate;
  export function manifestYaml(manifest: object): string;
  export function yamlDocument(file: string, text: string): ManifestDocument;
}
