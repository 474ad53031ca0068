/** The formats of `local env`. */
export const FORMATS = ["eval", "direnv", "powershell", "json"] as const;

/** One of the formats. */
export type Format = (typeof FORMATS)[number];

/** Where a local system can be reached. */
export interface LocalAddress {
  readonly stack: string;
  readonly region: string;
  readonly endpointUrl: string;
}

/** The URL of the repository in a local system. */
export function localUrl({ stack, region, endpointUrl }: LocalAddress): string {
  return `dynamodb://${region}/${stack}?endpoint=${endpointUrl}`;
}

/** The engine checks no signature, so these only have to be there. */
export const LOCAL_CREDENTIALS = { accessKeyId: "local", secretAccessKey: "local" } as const;

/** The variables with which every command and program works on a local system without options. */
export function localVariables(address: LocalAddress): Readonly<Record<string, string>> {
  const { region, endpointUrl } = address;
  return {
    ZAEL_REPOSITORY: localUrl(address),
    AWS_ENDPOINT_URL_DYNAMODB: endpointUrl,
    AWS_ENDPOINT_URL_DYNAMODB_STREAMS: endpointUrl,
    AWS_REGION: region,
    AWS_ACCESS_KEY_ID: LOCAL_CREDENTIALS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: LOCAL_CREDENTIALS.secretAccessKey,
  };
}

/** Variables that would override those above, or sign with credentials of an account. */
const REMOVED = ["AWS_PROFILE", "AWS_SESSION_TOKEN"] as const;

/** PowerShell ends a string in single quotes at any of these. */
const POWERSHELL_QUOTES = /['\u2018-\u201B]/g;

/** Variables as a shell or a program reads them. */
export function variablesText(variables: Readonly<Record<string, string>>, format: Format): string {
  if (format === "json") return `${JSON.stringify(variables, undefined, 2)}\n`;
  const isPowerShell = format === "powershell";
  const lines = Object.entries(variables).map(([name, value]) =>
    isPowerShell
      ? `$env:${name} = '${value.replaceAll(POWERSHELL_QUOTES, "$&$&")}'`
      : `export ${name}='${value.replaceAll("'", String.raw`'\''`)}'`,
  );
  const removals = REMOVED.map((name) =>
    isPowerShell ? `Remove-Item Env:${name} -ErrorAction SilentlyContinue` : `unset ${name}`,
  );
  return [...lines, ...removals].map((line) => `${line}\n`).join("");
}
