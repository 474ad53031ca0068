import { keyOfStatement, listStatements } from "../../../../limiter/test/support/written-items.ts";

/** One action that IAM decides about, with what it can be decided by. */
export interface IamCall {
  /** Such as `dynamodb:Query`. */
  readonly action: string;
  /** The path below the table's ARN, such as `index/GSI4`; empty for the table itself. */
  readonly path: string;
  /** The partition keys of everything that it touches; none when it names no item. */
  readonly leadingKeys: readonly string[];
}

type Input = Readonly<Record<string, unknown>>;
type Attributes = Readonly<Record<string, { readonly S?: string }>>;

/**
 * The actions that IAM decides about when DynamoDB gets a request. A batch is one action on all its
 * keys. A transaction is not an action: its members are, those of a kind together. Nor is a batch
 * of statements: each statement is decided about alone, in the order of the request.
 */
export function listIamCalls(operation: string, input: Input): readonly IamCall[] {
  const call = (leadingKeys: readonly string[], path = ""): IamCall => ({
    action: `dynamodb:${operation}`,
    path,
    leadingKeys: [...new Set(leadingKeys)],
  });
  switch (operation) {
    case "GetItem":
    case "UpdateItem":
    case "DeleteItem":
    case "PutItem":
      return [call([keyIn(input)])];
    case "BatchGetItem":
      return [call(batch(input).flatMap(({ Keys }) => (Keys as Attributes[]).map(toText)))];
    case "BatchWriteItem":
      return [call(batch(input).flatMap((writes) => Object.values(writes).map(keyOfBatched)))];
    case "Query":
      return [call([getPartition(input)], getIndex(input))];
    case "TransactWriteItems":
      return listMembers(input);
    case "BatchExecuteStatement":
      return listStatements(input).map((statement) => ({
        action: "dynamodb:PartiQLUpdate",
        path: "",
        leadingKeys: [toText({ ...keyOfStatement(statement) })],
      }));
    default:
      return [call([], STREAM_OPERATIONS.has(operation) ? "stream/label" : getIndex(input))];
  }
}

interface BatchedWrite {
  readonly PutRequest?: { readonly Item: Attributes };
  readonly DeleteRequest?: { readonly Key: Attributes };
}

const STREAM_OPERATIONS: ReadonlySet<string> = new Set([
  "DescribeStream",
  "GetRecords",
  "GetShardIterator",
]);

const ACTION_OF_MEMBER: Readonly<Record<string, string>> = {
  Put: "dynamodb:PutItem",
  Update: "dynamodb:UpdateItem",
  Delete: "dynamodb:DeleteItem",
  ConditionCheck: "dynamodb:ConditionCheckItem",
};

function listMembers({ TransactItems }: Input): readonly IamCall[] {
  const keys = new Map<string, Set<string>>();
  for (const item of TransactItems as readonly Readonly<Record<string, Input>>[])
    for (const [kind, member] of Object.entries(item)) {
      const action = ACTION_OF_MEMBER[kind]!;
      keys.set(action, (keys.get(action) ?? new Set()).add(keyIn(member)));
    }
  return [...keys].map(([action, of]) => ({ action, path: "", leadingKeys: [...of] }));
}

/** What a batch holds for each of its tables. */
function batch({ RequestItems }: Input): readonly Input[] {
  return Object.values(RequestItems as Readonly<Record<string, Input>>);
}

function keyOfBatched(write: unknown): string {
  const { PutRequest, DeleteRequest } = write as BatchedWrite;
  return toText((PutRequest?.Item ?? DeleteRequest?.Key)!);
}

function keyIn({ Key, Item }: Input): string {
  return toText((Key ?? Item) as Attributes);
}

function toText({ PK }: Attributes): string {
  return PK!.S!;
}

function getIndex({ IndexName }: Input): string {
  return typeof IndexName === "string" ? `index/${IndexName}` : "";
}

/** The value that a query compares the partition key of the table, or of its index, with. */
function getPartition(input: Input): string {
  const names = input["ExpressionAttributeNames"] as Readonly<Record<string, string>>;
  const values = input["ExpressionAttributeValues"] as Attributes;
  const wanted = `${typeof input["IndexName"] === "string" ? input["IndexName"] : ""}PK`;
  for (const [, name, value] of String(input["KeyConditionExpression"]).matchAll(
    /([\w#]+) = (:\w+)/g,
  ))
    if ((names[name!] ?? name) === wanted) return values[value!]!.S!;
  throw new Error(`no partition in ${JSON.stringify(input)}`);
}
