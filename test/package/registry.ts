/*
 * A package registry on this machine: it offers the packages that were packed, and any other that
 * the workspace has installed. So npm installs as it does for a user, without a network.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";

export interface Registry {
  readonly url: string;
  stop(): Promise<void>;
}

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly main?: unknown;
}

/** `packed` has the files of the packed packages by name; `modules` is a folder `node_modules`. */
export async function startRegistry(
  packed: Readonly<Record<string, string>>,
  { modules, folder }: { readonly modules: string; readonly folder: string },
): Promise<Registry> {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? "").slice(1);
    const name = path.replace(/^tarballs\//, "");
    const answer = path === name ? describe(name, url) : packTarball(name);
    answer.then(
      (body) => send(response, 200, body),
      (error: unknown) => send(response, 404, JSON.stringify({ error: String(error) })),
    );
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;

  /** What npm wants to know of a package: its only version, and where that is. */
  async function describe(name: string, base: string): Promise<string> {
    const manifest = buildManifest(name);
    const version = { ...manifest, dist: { tarball: `${base}tarballs/${name}` } };
    const tags = { latest: manifest.version };
    return JSON.stringify({ name, "dist-tags": tags, versions: { [manifest.version]: version } });
  }

  function buildManifest(name: string): Manifest {
    return JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8")) as Manifest;
  }

  async function packTarball(name: string): Promise<Buffer> {
    const known = packed[name];
    if (known !== undefined) return readFileSync(known);
    const draft = join(folder, name);
    const archive = join(draft, "package.tgz");
    if (!existsSync(archive)) {
      mkdirSync(draft, { recursive: true });
      symlinkSync(join(modules, name), join(draft, "package"), "junction");
      // Thousands of files that are not needed to run it, unless its code is there.
      const sources = String(buildManifest(name).main).includes("src/") ? [] : ["--exclude=src"];
      const without = ["--exclude=*.map", ...sources];
      await promisify(execFile)("tar", ["-czhf", archive, ...without, "-C", draft, "package"]);
    }
    return readFileSync(archive);
  }

  return {
    url,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function send(response: ServerResponse, status: number, body: string | Buffer): void {
  response.writeHead(status).end(body);
}
