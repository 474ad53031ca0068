"""Runs the original in a process of its own, told by lines of JSON on standard input, one answer per line on standard output.

    {"do": "open", "endpoint": URL, "never": N, "quotas": B}    -> {"python": ..., "zae_limiter": ..., "aiobotocore": ...}
    {"do": "enter", "case": {id, concurrency, entityIds, ...}}  -> {}
    {"do": "run", "operations": N}                              -> {"wall": seconds, "cpu": seconds}
    {"do": "bill", "operations": N}                             -> {"requests": N, "writeUnits": N, "readUnits": N}

It ends when standard input does, so it never outlives the benchmark.

Nobody runs the original's aggregator here, which would put back the write counter `wcu` that it keeps on every bucket. Without it a bucket
falls onto the slow path after 1000 acquires, all calls that are under way at once. To measure the fast path that it is built for, the
counter of busy buckets is set back every REFRESH operations, and the clocks stand still meanwhile.
"""

import asyncio
import gc
import json
import os
import platform
import sys
import time
import warnings
from importlib.metadata import version

os.environ.setdefault("AWS_ACCESS_KEY_ID", "local")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "local")
warnings.simplefilter("ignore")

from zae_limiter import Limit, RateLimiter, RateLimitExceeded, Repository, schema  # noqa: E402

STACK = "bench-original"
REGION = "us-east-1"
RESOURCE = "gpt-4"
CONSUME = {"rpm": 1, "tpm": 1}
REFRESH = 500
FULL_WRITE_COUNTER = "1000000"
READS = {"GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"}


class Bill:
    """Counts requests and units of a client while `counting`."""

    def __init__(self, client):
        self.counting = False
        self.reset()
        client.meta.events.register("before-parameter-build.dynamodb.*", self._ask)
        client.meta.events.register("after-call.dynamodb.*", self._count)

    def reset(self):
        self.requests = self.write_units = self.read_units = 0

    def _ask(self, params, **_):
        if self.counting:
            params["ReturnConsumedCapacity"] = "INDEXES"

    def _count(self, parsed, model, **_):
        if not self.counting:
            return
        self.requests += 1
        if parsed.get("Error", {}).get("Code") == "ConditionalCheckFailedException":
            self.write_units += 1  # AWS bills it; the engine's reply does not tell.
        consumed = parsed.get("ConsumedCapacity") or []
        units = sum(part.get("CapacityUnits", 0) for part in (consumed if isinstance(consumed, list) else [consumed]))
        if model.name in READS:
            self.read_units += units
        else:
            self.write_units += units


class Driver:
    async def open(self, endpoint, never, quotas):
        self.unreachable = [
            Limit.quota(name, never, cron="0 0 * * *", tz="Europe/Berlin") if quotas else Limit.per_minute(name, never)
            for name in CONSUME
        ]
        self.exhausted = [Limit.per_day("rpm", 1), Limit.per_minute("tpm", never)]
        await create_table(endpoint)
        self.repository = await Repository.open("bench", stack=STACK, region=REGION, endpoint_url=endpoint)
        self.client = await self.repository._get_client()
        self.bill_meter = Bill(self.client)
        await self.repository.set_system_defaults(self.unreachable)
        self.limiter = RateLimiter(repository=self.repository)
        return {"python": platform.python_version(), "zae_limiter": version("zae-limiter"), "aiobotocore": version("aiobotocore")}

    async def enter(self, case):
        self.case = case
        self.busy = []
        parent = case.get("parentId")
        if parent is not None:
            await self.repository.create_entity(parent)
            for entity_id in case["entityIds"]:
                await self.repository.create_entity(entity_id, parent_id=parent, cascade=True)
        if case.get("exhausted"):
            for entity_id in case["entityIds"]:
                await self.repository.set_limits(entity_id, self.exhausted, resource=RESOURCE)
        await self._operate(len(case["entityIds"]), self._acquire)
        if not case.get("exhausted"):
            # With more entities than this, none of them takes enough to run out of its counter.
            few = case["entityIds"] if len(case["entityIds"]) <= 8 else []
            self.busy = few + ([parent] if parent is not None else [])
        return {}

    async def run(self, operations):
        step = self._be_refused if self.case.get("exhausted") else self._acquire
        wall = cpu = 0.0
        chunk = REFRESH if self.busy else operations
        for done in range(0, operations, chunk):
            await self._refresh_write_counters()
            gc.collect()
            wall_start, cpu_start = time.perf_counter(), time.process_time()
            await self._operate(min(chunk, operations - done), step)
            wall += time.perf_counter() - wall_start
            cpu += time.process_time() - cpu_start
        return {"wall": wall, "cpu": cpu}

    async def bill(self, operations):
        await self._refresh_write_counters()
        self.bill_meter.reset()
        self.bill_meter.counting = True
        await self._operate(operations, self._be_refused if self.case.get("exhausted") else self._acquire)
        self.bill_meter.counting = False
        meter = self.bill_meter
        return {"requests": meter.requests, "writeUnits": meter.write_units, "readUnits": meter.read_units}

    async def _operate(self, operations, step):
        entity_ids = self.case["entityIds"]
        started = 0

        async def caller():
            nonlocal started
            while started < operations:
                entity_id = entity_ids[started % len(entity_ids)]
                started += 1
                await step(entity_id)

        await asyncio.gather(*(caller() for _ in range(self.case["concurrency"])))

    async def _acquire(self, entity_id):
        async with self.limiter.acquire(entity_id, RESOURCE, CONSUME):
            pass

    async def _be_refused(self, entity_id):
        try:
            async with self.limiter.acquire(entity_id, RESOURCE, CONSUME):
                pass
        except RateLimitExceeded:
            return
        raise RuntimeError("the original granted what should be refused")

    async def _refresh_write_counters(self):
        for entity_id in self.busy:
            key = {"PK": {"S": schema.pk_bucket(self.repository._namespace_id, entity_id, RESOURCE, 0)}, "SK": {"S": schema.sk_state()}}
            await self.client.update_item(
                TableName=STACK,
                Key=key,
                UpdateExpression="SET b_wcu_tk = :full",
                ConditionExpression="attribute_exists(PK)",
                ExpressionAttributeValues={":full": {"N": FULL_WRITE_COUNTER}},
            )


async def create_table(endpoint):
    """Its table as it defines it, without the stream: that slows the engine, and nobody else's table has one here."""
    repository = Repository(name=STACK, region=REGION, endpoint_url=endpoint)
    try:
        client = await repository._get_client()
        definition = schema.get_table_definition(STACK)
        definition.pop("StreamSpecification", None)
        await client.create_table(**definition)
    finally:
        await repository.close()


async def main():
    driver = Driver()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command = json.loads(line)
        try:
            answer = await getattr(driver, command.pop("do"))(**command)
        except Exception as error:  # The benchmark decides what to do about it.
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    if hasattr(driver, "repository"):
        await driver.repository.close()


asyncio.run(main())
