export function isCfnLintInstalled(): boolean;
export function installCfnLint(): string;
export function lint(args: readonly string[]): string;
