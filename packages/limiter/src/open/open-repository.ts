import { ValidationError } from "../core/errors.ts";
import type { Repository, RepositoryOptions } from "../repository/repository.ts";

type Open = (rest: string, options: RepositoryOptions) => Promise<Repository>;

/**
 * The backend of each scheme. A backend is loaded on first use, so that users need only the client
 * of their own backend.
 */
const SCHEMES: ReadonlyMap<string, Open> = new Map<string, Open>([
  ["memory", openMemory],
  ["sqlite", openSqlite],
  ["dynamodb", openDynamo],
]);

/**
 * Opens the repository that a URL names.
 *
 * @example
 * const repository = await openRepository("sqlite:./limits.db");
 */
export async function openRepository(
  url: string,
  options: RepositoryOptions = {},
): Promise<Repository> {
  const scheme = typeof url === "string" ? /^([a-z]+):/.exec(url)?.[1] : undefined;
  const open = scheme === undefined ? undefined : SCHEMES.get(scheme);
  if (open === undefined)
    throw new ValidationError(
      "url",
      url,
      `must begin with one of ${[...SCHEMES.keys()].map((known) => `${known}:`).join(", ")}`,
    );
  return open(url.slice(scheme!.length + 1), options);
}

async function openMemory(rest: string, options: RepositoryOptions): Promise<Repository> {
  if (rest !== "" && rest !== "//")
    throw new ValidationError("url", `memory:${rest}`, "memory: must not be followed by anything");
  const { MemoryRepository } = await import("../repository/memory/memory-repository.ts");
  return new MemoryRepository(options);
}

/**
 * Everything after the colon is the path, relative or absolute. `sqlite:///var/limits.db`, the
 * usual form of a URL, is accepted too.
 */
async function openSqlite(rest: string, options: RepositoryOptions): Promise<Repository> {
  const path = rest.startsWith("///") ? rest.slice(2) : rest;
  if (path.trim() === "" || path.startsWith("//"))
    throw new ValidationError(
      "url",
      `sqlite:${rest}`,
      "must name the file after the colon, such as sqlite:./limits.db",
    );
  const { SqliteRepository } = await import("../repository/sqlite/sqlite-repository.ts");
  return SqliteRepository.open(path, options);
}

async function openDynamo(rest: string, options: RepositoryOptions): Promise<Repository> {
  const { DynamoRepository } = await import("../repository/dynamodb/dynamo-repository.ts");
  const { dynamoOptions } = await import("../repository/dynamodb/opening/url.ts");
  return DynamoRepository.open(options.namespace, {
    ...options,
    ...dynamoOptions(`dynamodb:${rest}`),
  });
}
