import { expect } from "vitest";
import { InfrastructureNotFoundError, type Repository } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import type { Outcome } from "../../provisioner/answer.ts";
import { physicalId } from "../../provisioner/physical-id.ts";
import type { ResourceRequest } from "../../provisioner/request.ts";
import { changeResource, type Provisioning } from "../../provisioner/resource.ts";
import type { LambdaContext } from "../../runtime/lambda-context.ts";

const STACK_ID = "arn:aws:cloudformation:eu-west-1:123456789012:stack/app/1";

/** Limits of one name and capacity for each resource. */
export function properties(
  namespace: string,
  capacities: Readonly<Record<string, string>>,
): object {
  const levels = Object.entries(capacities).map(([resource, rpm]) => [
    resource,
    { limits: { rpm } },
  ]);
  const manifest = { namespace, resources: Object.fromEntries(levels) as object };
  return { ServiceToken: "arn", Manifest: JSON.stringify(manifest) };
}

export type Opened = Awaited<ReturnType<Provisioning["open"]>>;

/** A table, and a CloudFormation that remembers the physical ids of its answers. */
export class ResourceWorld {
  readonly root = new MemoryRepository();
  onSleep = (): void => {};
  /** Called with every repository that is opened; returns the one to use. */
  wrapped = (repository: Opened): Opened => repository;
  isMissing = false;

  readonly #provisioning: Provisioning = {
    tableName: "limits",
    open: async (namespace, { create }) => {
      if (this.isMissing) throw new InfrastructureNotFoundError("There is no table.");
      if (create) await this.root.registerNamespace(namespace);
      const isThere = (await this.root.getNamespace(namespace)) !== undefined;
      return isThere
        ? this.wrapped(await this.root.namespace(namespace))
        : new MemoryRepository({ namespace });
    },
    sleep: async () => this.onSleep(),
  };

  send(request: Partial<ResourceRequest>, lambda: LambdaContext = {}): Promise<Outcome> {
    const whole: ResourceRequest = {
      RequestType: "Create",
      ResponseURL: "https://example.com/answer",
      StackId: STACK_ID,
      RequestId: "request-1",
      LogicalResourceId: "Limits",
      ...request,
    };
    return changeResource(whole, this.#provisioning, lambda);
  }

  create(ResourceProperties: object, LogicalResourceId = "Limits"): Promise<Outcome> {
    return this.send({ RequestType: "Create", ResourceProperties, LogicalResourceId });
  }

  update(PhysicalResourceId: string, before: object, after: object): Promise<Outcome> {
    return this.send({
      RequestType: "Update",
      PhysicalResourceId,
      OldResourceProperties: before,
      ResourceProperties: after,
    });
  }

  delete(PhysicalResourceId: string, ResourceProperties: object): Promise<Outcome> {
    return this.send({ RequestType: "Delete", PhysicalResourceId, ResourceProperties });
  }

  /** Waits until the state of the namespace has a revision. */
  async begun(revision: number): Promise<void> {
    const repository = await this.root.namespace("team-a");
    while ((await repository.getProvisionerState()).revision < revision) await Promise.resolve();
  }

  /** The capacities that are stored in a namespace, by resource; undefined if there is none. */
  async stored(namespace: string): Promise<Readonly<Record<string, number>> | undefined> {
    if ((await this.root.getNamespace(namespace)) === undefined) return undefined;
    const repository = await this.root.namespace(namespace);
    const found: Record<string, number> = {};
    for (const resource of await repository.listResourcesWithDefaults())
      found[resource] = (await repository.getResourceDefaults(resource))[0]!.capacity;
    return found;
  }
}

export const getId = (namespace: string, LogicalResourceId = "Limits"): string =>
  physicalId({ StackId: STACK_ID, LogicalResourceId }, { tableName: "limits", namespace });

export const success = (id: string, counts: object): object =>
  expect.objectContaining({
    status: "SUCCESS",
    physicalId: id,
    report: expect.objectContaining(counts) as unknown,
  }) as object;

/** A repository with one method of its own. */
export function overridden<Name extends keyof Repository>(
  repository: Opened,
  name: Name,
  method: Repository[Name],
): Opened {
  return new Proxy(repository, {
    get: (target, property) => {
      if (property === name) return method;
      const member: unknown = Reflect.get(target, property, target);
      return typeof member === "function" ? (member.bind(target) as unknown) : member;
    },
  });
}
