import { expect, it } from "vitest";
import { resolveOptions, type DynamoOptions } from "./options.ts";
import { checkStackOptions, StackAccess, type StackTools } from "./stack-tools.ts";

const deleted: unknown[] = [];
const tools: StackTools = {
  ensureStack: () => expect.fail("it was deployed"),
  updateLambda: () => expect.fail("it was updated"),
  deleteStack: async (place) => {
    deleted.push(place);
    return { outcome: "absent" };
  },
};

function access(options: DynamoOptions, load = async () => tools): StackAccess {
  const resolved = resolveOptions("app", { stack: "limits", ...options }, {});
  return new StackAccess(options, { region: "eu-west-1", resolved }, load);
}

it("deletes a stack with its data, where the repository is, and returns whether there was one", async () => {
  expect(await access({ endpointUrl: "http://127.0.0.1:1" }).delete()).toBe(false);
  const place = { stack: "limits", region: "eu-west-1", endpointUrl: "http://127.0.0.1:1" };
  expect(deleted).toEqual([{ ...place, withData: true }]);
});

it.each(["client", "transport"] as const)(
  "deletes no stack for a repository with a %s that was passed in",
  async (kind) => {
    const options = { [kind]: {} as never };
    await expect(access(options, () => expect.fail("it was loaded")).delete()).rejects.toThrow(
      `Invalid ${kind}: its credentials may be of another account than those that stacks are managed with; open the repository without a ${kind}, or use the command line`,
    );
  },
);

it("says what to install, or to run, without the package that manages stacks", async () => {
  const without = access({}, () =>
    Promise.reject(notFound("Cannot find package '@zae-limiter/infra'")),
  );
  const install =
    "needs @zae-limiter/infra: install it with npm install @zae-limiter/infra, or run";
  await expect(without.delete()).rejects.toMatchObject({
    code: "ERR_LIMITER_INFRA_MISSING",
    message: `Deleting a stack ${install} zae-limiter delete --stack limits --region eu-west-1 --with-data.`,
  });
  await expect(without.updateLambda()).rejects.toMatchObject({
    code: "ERR_LIMITER_INFRA_MISSING",
    message: `Updating a Lambda ${install} zae-limiter deploy --stack limits --region eu-west-1.`,
  });
});

it.each([
  notFound(
    "Cannot find package '@aws-sdk/client-s3' imported from node_modules/@zae-limiter/infra/x.js",
  ),
  new SyntaxError("Unexpected token"),
])("does not advise to install a package that is installed but broken: %o", async (error) => {
  await expect(access({}, () => Promise.reject(error)).delete()).rejects.toBe(error);
});

it("knows the options of a stack by their names", () => {
  checkStackOptions({ enableAlarms: false, tags: { team: "search" } });
  expect(() => checkStackOptions({ enableAlarm: false } as object)).toThrow(
    "Invalid enableAlarm: is not an option of a stack; did you mean enableAlarms?",
  );
});

function notFound(message: string): Error {
  return Object.assign(new Error(message), { code: "ERR_MODULE_NOT_FOUND" });
}
