export interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [part: string]: unknown;
}

/** A built declaration; an interface and a constant may share a name. */
export interface Declaration {
  readonly name: string;
  readonly path: string;
  readonly text: string;
  readonly nodes: readonly SyntaxNode[];
  /** What its identifiers mean; without nodes if that is from a package that is not ours. */
  readonly references: ReadonlyMap<SyntaxNode, Declaration | { readonly nodes?: undefined }>;
  readonly isPublic?: true;
}

export function collectModules(): readonly {
  readonly name: string;
  readonly declarations: readonly Declaration[];
}[];
export function declareSurface(): Promise<Readonly<Record<string, string>>>;
