import type { Command } from "commander";
import { InfrastructureNotFoundError, NamespaceNotFoundError, type Repository } from "zae-limiter";
import type { Environment } from "../../environment.ts";
import type { ExitCode } from "../../exit.ts";
import { Screen } from "../../output/screen.ts";
import { confirm } from "./confirm.ts";
import { nearest } from "./nearest.ts";
import {
  createsOnFirstUse,
  findStacklessUrl,
  managedStack,
  repositoryOrStackUrl,
  repositoryUrl,
  stackPlace,
  type RepositoryLocation,
  type NamedStack,
  type PlaceOption,
} from "./repository-url.ts";

/**
 * Whether a verb may create the repository. Verbs that read or delete, and `acquire`, need one that
 * exists; verbs that store something may create it.
 */
export type Access = "existing" | "create";

interface GlobalOptions extends RepositoryLocation {
  readonly namespace?: string;
  readonly json?: boolean;
}

/** The context of a verb. */
export interface VerbContext {
  readonly repository: Repository;
  readonly screen: Screen;
}

/** How to open a repository for a verb. */
interface OpeningOptions {
  /** By default, the one that the command line or the environment names. */
  readonly url?: string;
  /** Called before a repository that is missing is created, which it can prevent by throwing. */
  readonly beforeCreation?: () => Promise<void>;
}

/** A namespace, and the option or variable that names it. */
export interface GivenNamespace {
  readonly name: string;
  readonly by: "--namespace" | "ZAEL_NAMESPACE";
}

const DEFAULT_NAMESPACE = "default";

/** Opens the repository for a verb, closes it afterwards, and passes on the verb's exit code. */
export class Session {
  /** The parts of the environment that a verb reads. */
  readonly environment: Environment;
  /** Sets the exit code of the run. */
  readonly exitWith: (code: ExitCode) => void;

  constructor(environment: Environment, exitWith: (code: ExitCode) => void) {
    this.environment = environment;
    this.exitWith = exitWith;
  }

  /** Runs a verb in the namespace that the command line names, which must exist. */
  async inNamespace(
    command: Command,
    access: Access,
    work: (context: VerbContext) => Promise<ExitCode | void>,
  ): Promise<void> {
    await this.inRepository(command, access, async ({ repository, screen }) => {
      const scoped = await openNamespace(repository, this.getNamespaceName(command));
      return work({ repository: scoped, screen });
    });
  }

  /** Runs a verb on the whole repository. */
  async inRepository(
    command: Command,
    access: Access,
    work: (context: VerbContext) => Promise<ExitCode | void>,
    { url = this.getUrl(command), beforeCreation }: OpeningOptions = {},
  ): Promise<void> {
    const repository = await this.#open(url, access, beforeCreation);
    try {
      const code = await work({ repository, screen: this.screen(command) });
      if (code !== undefined) this.exitWith(code);
    } finally {
      await repository.close();
    }
  }

  /** The URL of the repository that a verb works on. */
  getUrl(command: Command): string {
    return repositoryUrl(command.optsWithGlobals<GlobalOptions>(), this.environment.env);
  }

  /** The URL of the repository that `status` shows. */
  getStatusUrl(command: Command): string {
    return repositoryOrStackUrl(command.optsWithGlobals<GlobalOptions>(), this.environment.env);
  }

  /** The stack that an infrastructure verb works on. */
  getStackPlace(command: Command): NamedStack {
    return stackPlace(command.optsWithGlobals<GlobalOptions>(), this.environment.env);
  }

  /** The same for a verb that manages stacks on AWS; one of these options must say so. */
  getManagedStack(command: Command, by?: readonly PlaceOption[]): NamedStack {
    return managedStack(command.optsWithGlobals<GlobalOptions>(), this.environment.env, by);
  }

  /** The repository that is named, if it has no stack. */
  findStacklessUrl(command: Command): string | undefined {
    return findStacklessUrl(command.optsWithGlobals<GlobalOptions>(), this.environment.env);
  }

  /** The name of the namespace that a verb works in. */
  getNamespaceName(command: Command): string {
    return this.findGivenNamespace(command)?.name ?? DEFAULT_NAMESPACE;
  }

  /** The namespace that the command line or the environment names; undefined if neither does. */
  findGivenNamespace(command: Command): GivenNamespace | undefined {
    const { namespace } = command.optsWithGlobals<GlobalOptions>();
    if (namespace !== undefined) return { name: namespace, by: "--namespace" };
    const name = this.environment.env["ZAEL_NAMESPACE"];
    return name ? { name, by: "ZAEL_NAMESPACE" } : undefined;
  }

  /** Asks before something is destroyed, unless `--yes` was given. */
  async confirm(question: string, { yes = false }: { readonly yes?: boolean }): Promise<void> {
    await confirm(question, yes, this.environment);
  }

  /** The output of a verb. */
  screen(command: Command): Screen {
    return new Screen(this.environment, command.optsWithGlobals<GlobalOptions>().json === true);
  }

  /**
   * Creates the repository, and its default namespace, only when it does not exist yet, the verb
   * may create it, and it is not a stack: `deploy` is the one verb that deploys. Otherwise nothing
   * is created, not even a namespace.
   */
  async #open(
    url: string,
    access: Access,
    beforeCreation: OpeningOptions["beforeCreation"],
  ): Promise<Repository> {
    const { openRepository } = this.environment;
    try {
      return await openRepository(url, { create: false });
    } catch (error) {
      if (!(error instanceof InfrastructureNotFoundError)) throw error;
      if (access === "existing" || !createsOnFirstUse(url)) throw error;
      await beforeCreation?.();
      return openRepository(url);
    }
  }
}

async function openNamespace(repository: Repository, name: string): Promise<Repository> {
  try {
    return await repository.namespace(name);
  } catch (error) {
    if (!(error instanceof NamespaceNotFoundError)) throw error;
    const names = (await repository.listNamespaces()).map((namespace) => namespace.name);
    const similar = nearest(name, names);
    if (similar !== undefined) error.message += ` Did you mean ${similar}?`;
    error.message += ` To register it: zae-limiter namespace register ${name}`;
    throw error;
  }
}
