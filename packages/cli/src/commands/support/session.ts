import type { Command } from "commander";
import { InfrastructureNotFoundError, NamespaceNotFoundError, type Repository } from "zae-limiter";
import type { Environment } from "../../environment.ts";
import type { ExitCode } from "../../exit.ts";
import { Screen } from "../../output/screen.ts";
import { confirm } from "./confirm.ts";
import { nearest } from "./nearest.ts";
import { repositoryUrl, type RepositoryPlace } from "./repository-url.ts";

/**
 * What a verb may bring into being. Reading verbs, deleting verbs and `acquire` want a repository
 * that exists; the verbs that store something may be the first to use it.
 */
export type Access = "existing" | "create";

interface GlobalOptions extends RepositoryPlace {
  readonly namespace?: string;
  readonly json?: boolean;
}

/** What a verb works with. */
export interface VerbContext {
  readonly repository: Repository;
  readonly screen: Screen;
}

const DEFAULT_NAMESPACE = "default";

/** Opens what a verb needs, closes it afterwards, and passes the verb's exit code on. */
export class Session {
  readonly #environment: Environment;
  readonly #exitWith: (code: ExitCode) => void;

  constructor(environment: Environment, exitWith: (code: ExitCode) => void) {
    this.#environment = environment;
    this.#exitWith = exitWith;
  }

  /**
   * Runs a verb inside the namespace that the command line names. No verb registers one on the way.
   */
  async inNamespace(
    command: Command,
    access: Access,
    work: (context: VerbContext) => Promise<ExitCode | void>,
  ): Promise<void> {
    await this.inRepository(command, access, async ({ repository, screen }) => {
      const { namespace } = command.optsWithGlobals<GlobalOptions>();
      const name = namespace ?? (this.#environment.env["ZAEL_NAMESPACE"] || DEFAULT_NAMESPACE);
      const scoped = await namespaceOf(repository, name);
      return work({ repository: scoped, screen });
    });
  }

  /** Runs a verb on the whole repository. */
  async inRepository(
    command: Command,
    access: Access,
    work: (context: VerbContext) => Promise<ExitCode | void>,
  ): Promise<void> {
    const url = repositoryUrl(command.optsWithGlobals<GlobalOptions>(), this.#environment.env);
    const repository = await this.#open(url, access);
    try {
      const code = await work({ repository, screen: this.#screen(command) });
      if (code !== undefined) this.#exitWith(code);
    } finally {
      await repository.close();
    }
  }

  /** Asks before something is destroyed, unless `--yes` was given. */
  async confirm(question: string, { yes = false }: { readonly yes?: boolean }): Promise<void> {
    await confirm(question, yes, this.#environment);
  }

  #screen(command: Command): Screen {
    return new Screen(this.#environment, command.optsWithGlobals<GlobalOptions>().json === true);
  }

  /**
   * Nothing is created on the way, a namespace neither, unless there is no repository yet and the
   * verb may be its first.
   */
  async #open(url: string, access: Access): Promise<Repository> {
    const { openRepository } = this.#environment;
    try {
      return await openRepository(url, { create: false });
    } catch (error) {
      if (!(error instanceof InfrastructureNotFoundError) || access === "existing") throw error;
      return openRepository(url);
    }
  }
}

async function namespaceOf(repository: Repository, name: string): Promise<Repository> {
  try {
    return await repository.namespace(name);
  } catch (error) {
    if (!(error instanceof NamespaceNotFoundError)) throw error;
    const names = (await repository.listNamespaces()).map((namespace) => namespace.name);
    const similar = nearest(name, names);
    error.message += `${similar === undefined ? "" : ` Did you mean ${similar}?`} To register it: zae-limiter namespace register ${name}`;
    throw error;
  }
}
