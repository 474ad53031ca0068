"""Runs the Python zae-limiter on a table of the TypeScript one, told by lines of JSON on standard input, one answer per line on standard output.

    {"do": "open", "endpoint": URL, "stack": S, "checked": B}                   -> {"version": V}
    {"do": "create", "endpoint": URL, "stack": S}                               -> {}
    {"do": "store", "project": P, "key": K, "resource": R}                      -> {}
    {"do": "read", "project": P, "key": K, "resource": R}                       -> {what: what it found, ...}
    {"do": "hammer", "entity": E, "resource": R, "callers": N, "calls": N}      -> {how calls ended: N, ...}
    {"do": "hammer", "entity": E, "resource": R, "callers": N, "seconds": S}    -> the same

Without "checked" it opens the table as if it had been opened before the table became one of the TypeScript library: versions are
looked at only then. It ends when standard input does.
"""

import asyncio
import collections
import json
import os
import sys
import time
import warnings
from importlib.metadata import version

os.environ.setdefault("AWS_ACCESS_KEY_ID", "local")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "local")
warnings.simplefilter("ignore")

from zae_limiter import Limit, RateLimiter, RateLimitExceeded, Repository, schema  # noqa: E402

REGION = "us-east-1"
NAMESPACE = "app"
LIMIT = "calls"
AFTER_REFUSAL = 0.005


async def nothing(*_, **__):
    return None


class Driver:
    async def create(self, endpoint, stack):
        repository = Repository(name=stack, region=REGION, endpoint_url=endpoint)
        try:
            await (await repository._get_client()).create_table(**schema.get_table_definition(stack))
        finally:
            await repository.close()
        return {}

    async def open(self, endpoint, stack, checked):
        checks = ("_check_and_update_version_auto", "_check_version_strict")
        kept = {name: getattr(Repository, name) for name in checks}
        if not checked:
            for name in checks:
                setattr(Repository, name, nothing)
        try:
            self.repository = await Repository.open(NAMESPACE, stack=stack, region=REGION, endpoint_url=endpoint)
        finally:
            for name, check in kept.items():
                setattr(Repository, name, check)
        self.limiter = RateLimiter(repository=self.repository)
        return {"version": version("zae-limiter")}

    async def store(self, project, key, resource):
        await self.repository.create_entity(project, name=project)
        await self.repository.create_entity(key, name=key, parent_id=project)
        await self.repository.set_limits(key, [Limit.per_day(LIMIT, 100)], resource=resource)
        await self.repository.set_resource_defaults("only-python", [Limit.per_day(LIMIT, 100)])
        return {}

    async def read(self, project, key, resource):
        readings = {
            "entity": lambda: self.repository.get_entity(key),
            "children": lambda: self.repository.get_children(project),
            "limits of the entity": lambda: self.repository.get_limits(key, resource),
            "limits of an entity that inherits": lambda: self.repository.get_limits(f"{key}-inheriting", resource),
            "limits of the resource": lambda: self.repository.get_resource_defaults(resource),
            "resources with limits": lambda: self.repository.list_resources_with_defaults(),
            "resources with limits of entities": lambda: self.repository.list_resources_with_entity_configs(),
            "audit events": lambda: self.repository.get_audit_events(key),
            "buckets of the entity": lambda: self.repository.get_buckets(key),
            "buckets of the resource": lambda: self.repository.get_resource_buckets(resource),
            "available": lambda: self.limiter.available(key, resource),
            "usage": lambda: self.repository.get_usage_snapshots(entity_id=key),
        }
        found = {}
        for what, reading in readings.items():
            try:
                found[what] = repr(await reading())
            except Exception as error:
                found[what] = f"{type(error).__name__}: {error}"
        return found

    async def hammer(self, entity, resource, callers, calls=None, seconds=None):
        ends = collections.Counter()
        started = 0
        until = None if seconds is None else time.monotonic() + seconds

        def goes_on():
            return started < calls if until is None else time.monotonic() < until

        async def caller():
            nonlocal started
            while goes_on():
                started += 1
                try:
                    async with self.limiter.acquire(entity, resource, {LIMIT: 1}):
                        pass
                    ends["granted"] += 1
                except RateLimitExceeded:
                    ends["refused"] += 1
                    await asyncio.sleep(AFTER_REFUSAL)
                except Exception as error:
                    ends["failed"] += 1
                    ends[f"{type(error).__name__}: {error}"[:200]] += 1

        await asyncio.gather(*(caller() for _ in range(callers)))
        return dict(ends)


async def main():
    driver = Driver()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command = json.loads(line)
        try:
            answer = await getattr(driver, command.pop("do"))(**command)
        except Exception as error:  # What fails is a result here.
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    if hasattr(driver, "repository"):
        await driver.repository.close()


asyncio.run(main())
