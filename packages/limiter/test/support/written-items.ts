/** The key of an item, as requests carry it. */
export interface RequestKey {
  readonly PK: { readonly S: string };
  readonly SK: { readonly S: string };
}

/** One statement of a `BatchExecuteStatement`. */
export interface RequestStatement {
  readonly Statement: string;
  readonly Parameters?: readonly object[];
}

/** One write of one item. */
export interface ItemWrite {
  readonly kind: "Put" | "Update" | "Delete";
  readonly key: RequestKey;
}

/** The writes that a request consists of, in its order; none when it only reads. */
export function listWrites(operation: string, input: object): readonly ItemWrite[] {
  const { TransactItems = [], RequestItems = {} } = input as WriteInput;
  switch (operation) {
    case "PutItem":
      return writesIn({ Put: input });
    case "UpdateItem":
      return writesIn({ Update: input });
    case "DeleteItem":
      return writesIn({ Delete: input });
    case "TransactWriteItems":
      return TransactItems.flatMap(writesIn);
    case "BatchWriteItem":
      return Object.values(RequestItems)
        .flat()
        .flatMap(({ PutRequest, DeleteRequest }) =>
          writesIn({ Put: PutRequest, Delete: DeleteRequest }),
        );
    case "BatchExecuteStatement":
      return listStatements(input).map((statement) => ({
        kind: "Update",
        key: keyOfStatement(statement),
      }));
    default:
      return [];
  }
}

/** The keys of the items that a request writes, one for each write, in its order. */
export function writtenKeys(operation: string, input: object): readonly RequestKey[] {
  return listWrites(operation, input).map(({ key }) => key);
}

/** The statements of a `BatchExecuteStatement`; none of any other request. */
export function listStatements(input: object): readonly RequestStatement[] {
  return (input as { readonly Statements?: readonly RequestStatement[] }).Statements ?? [];
}

/**
 * The key of the item that a statement updates. Every value is a parameter, and the key comes
 * first: `UPDATE "table" SET … WHERE "PK"=? AND "SK"=? …`. Throws for any other statement.
 */
export function keyOfStatement({ Statement: text, Parameters = [] }: RequestStatement): RequestKey {
  // Names are quoted, and may hold anything.
  const withoutNames = text.replaceAll(/"(?:[^"]|"")*"/g, (name) =>
    name === '"PK"' || name === '"SK"' ? name : '""',
  );
  const [, changes] =
    /^UPDATE "" ((?:SET|REMOVE) [^']*) WHERE "PK" ?= ?\? AND "SK" ?= ?\?(?= |$)[^']*$/.exec(
      withoutNames,
    ) ?? [];
  const first = (changes ?? "").split("?").length - 1;
  const [PK, SK] = Parameters.slice(first, first + 2) as readonly Partial<RequestKey["PK"]>[];
  if (changes === undefined || !PK?.S || SK?.S === undefined)
    throw new Error(`not an update of one item by key: ${text}`);
  return { PK: { S: PK.S }, SK: { S: SK.S } };
}

interface Keyed {
  readonly Key?: RequestKey;
  readonly Item?: RequestKey;
}

type Write = { readonly [Kind in ItemWrite["kind"]]?: Keyed | undefined };

interface WriteInput {
  readonly TransactItems?: readonly Write[];
  readonly RequestItems?: Readonly<
    Record<string, readonly { readonly PutRequest?: Keyed; readonly DeleteRequest?: Keyed }[]>
  >;
}

function writesIn({ Put, Update, Delete }: Write): readonly ItemWrite[] {
  const kinds = { Put, Update, Delete };
  return (["Put", "Update", "Delete"] as const).flatMap((kind) => {
    const { PK, SK } = kinds[kind]?.Item ?? kinds[kind]?.Key ?? {};
    return PK === undefined || SK === undefined ? [] : [{ kind, key: { PK, SK } }];
  });
}
