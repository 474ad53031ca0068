import { existsSync, readdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { LocalError } from "../../../exit.ts";
import type { Environment } from "../../../environment.ts";

/** The engines that `local up` knows. */
export const ENGINES = ["dynoxide", "dynamodb-local"] as const;

/** One of the engines. */
export type EngineName = (typeof ENGINES)[number];

/** Which engine is wanted. */
export interface EngineChoice {
  readonly engine?: EngineName;
  /** The jar of DynamoDB Local, or the folder that it is in. */
  readonly jar?: string;
}

/** A program that is an engine, and how it is called. */
export interface EngineProgram {
  readonly name: EngineName;
  readonly command: string;
  /** `data` is the folder that it keeps its data in; without one, it keeps it in memory. */
  args(port: number, data: string | undefined): readonly string[];
  /** The output that says that it listens; if there is none, its open port has to do. */
  readonly listening?: RegExp;
}

/** Engines listen on this machine only. */
export const HOST = "127.0.0.1";

/** Finds the requested engine, or any. If there is none, the error says what to install. */
export function findEngine(
  choice: EngineChoice,
  env: Environment["env"],
  platform = `${process.platform}-${process.arch}`,
): EngineProgram {
  const jar = choice.jar ?? (env["ZAEL_LOCAL_JAR"] || undefined);
  const engine = choice.engine ?? (choice.jar === undefined ? undefined : "dynamodb-local");
  const binary = engine === "dynamodb-local" ? undefined : dynoxideBinary(platform);
  if (binary !== undefined) return dynoxide(binary);
  if (engine !== "dynoxide" && jar !== undefined) return dynamoDbLocal(jar);
  throw new LocalError(missingEngineText(engine, platform));
}

function missingEngineText(engine: EngineName | undefined, platform: string): string {
  const npm =
    platform === DYNOXIDE_PLATFORM
      ? `install ${DYNOXIDE} beside the command line`
      : "use Linux on x64, which dynoxide exists for";
  const jar =
    "download DynamoDB Local from AWS and pass its folder with --jar or ZAEL_LOCAL_JAR " +
    "(it needs a JDK, 17 or newer)";
  if (engine === "dynoxide") return `The engine dynoxide is not here: ${npm}.`;
  if (engine === "dynamodb-local") return `DynamoDB Local is not here: ${jar}.`;
  return `There is no DynamoDB engine here: ${npm}, or ${jar}.`;
}

/** An optional dependency, which npm installs only where it can run. */
const DYNOXIDE = "@dynoxide/linux-x64";
const DYNOXIDE_PLATFORM = "linux-x64";

function dynoxideBinary(platform: string): string | undefined {
  if (platform !== DYNOXIDE_PLATFORM) return undefined;
  try {
    return createRequire(import.meta.url).resolve(`${DYNOXIDE}/dynoxide`);
  } catch {
    return undefined;
  }
}

function dynoxide(command: string): EngineProgram {
  return {
    name: "dynoxide",
    command,
    args: (port, data) => [
      "--host",
      HOST,
      "--port",
      String(port),
      ...(data === undefined ? [] : ["--db-path", join(data, "dynoxide.db")]),
    ],
    listening: /listening on/,
  };
}

/**
 * DynamoDB Local listens on every interface. Java runs the launcher beside this package from its
 * source, which binds it to this machine.
 */
function dynamoDbLocal(jar: string): EngineProgram {
  const { classPath, native } = dynamoDbLocalFiles(jar);
  const launcher = fileURLToPath(new URL("../../../../java/LocalDynamoDb.java", import.meta.url));
  return {
    name: "dynamodb-local",
    command: "java",
    args: (port, data) => [
      `-Dsqlite4java.library.path=${native}`,
      "-cp",
      classPath.join(delimiter),
      launcher,
      "-sharedDb",
      "-disableTelemetry",
      "-port",
      String(port),
      ...(data === undefined ? ["-inMemory"] : ["-dbPath", data]),
    ],
  };
}

/** The paths of its files: as AWS packs them, or in one folder, as Maven fetches them. */
function dynamoDbLocalFiles(given: string): {
  readonly classPath: readonly string[];
  readonly native: string;
} {
  const isJar = statSync(given, { throwIfNoEntry: false })?.isFile() === true;
  const folders = isJar ? [dirname(given)] : [given, join(given, "lib")];
  const folder = folders.find((candidate) => jarIn(candidate) !== undefined);
  const jar = isJar ? basename(given) : folder && jarIn(folder);
  if (folder === undefined || jar === undefined)
    throw new LocalError(`There is no DynamoDBLocal.jar at ${given}.`);
  const packed = join(folder, "DynamoDBLocal_lib");
  const libraries = existsSync(packed) ? packed : folder;
  return { classPath: [join(folder, jar), join(libraries, "*")], native: libraries };
}

function jarIn(folder: string): string | undefined {
  if (!existsSync(folder)) return undefined;
  return readdirSync(folder).find((name) => /^DynamoDBLocal[-.\d]*\.jar$/.test(name));
}
