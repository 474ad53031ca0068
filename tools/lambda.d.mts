export function bundleFunction(name: string, outfile?: string): Promise<string>;
export function packFunction(name: string): Promise<string>;
export function packOutdated(): Promise<void>;
