/** The variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Where the table of a function is. */
export interface TableSettings {
  readonly tableName: string;
  readonly region: string;
  /** Where DynamoDB is, if not where AWS has it. */
  readonly dynamodbUrl: string | undefined;
}

/** Reads where the table is, or throws an error whose message is one sentence. */
export function tableSettings(environment: Environment): TableSettings {
  return {
    tableName: requireVariable(environment, "TABLE_NAME", "the name of the table"),
    region: requireVariable(environment, "AWS_REGION", "the region of the table"),
    dynamodbUrl: findEndpoint(environment, "DYNAMODB"),
  };
}

/** The address of a service, if the environment has one. */
export function findEndpoint(environment: Environment, service: string): string | undefined {
  const ownUrl = environment[`AWS_ENDPOINT_URL_${service}`];
  return ownUrl || environment["AWS_ENDPOINT_URL"] || undefined;
}

/** The value of a variable that must be set. */
export function requireVariable(environment: Environment, name: string, meaning: string): string {
  const value = environment[name];
  if (value) return value;
  throw new Error(`The environment variable ${name} must be set to ${meaning}.`);
}
