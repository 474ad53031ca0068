/** The code of a function as Lambda takes it. */
export interface LambdaPackage {
  readonly name: "aggregator";
  /** The zip file. */
  readonly content: Uint8Array;
  /** The SHA-256 of the zip file in hexadecimal: the same code has the same one. */
  readonly sha256: string;
}

/** The code of a function, as it lies in this package. */
export async function lambdaPackage(_name: "aggregator"): Promise<LambdaPackage> {
  throw new Error("not built yet");
}
