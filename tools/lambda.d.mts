export function bundleFunction(name: string, outfile?: string): Promise<string>;
