"""Runs the original's aggregator in a process of its own, told by lines of JSON on standard input, one answer per line on standard output.

    {"do": "open", "endpoint": URL}             -> {"python": ..., "zae_limiter": ..., "boto3": ...}
    {"do": "enter", "entities": N, "batch": N}  -> {}
    {"do": "run", "records": N}                 -> {"wall": seconds, "cpu": seconds, "requests": N, "writeUnits": N}

It ends when standard input does, so it never outlives the benchmark.

The records are those of acquires that take one of each of two limits. Their images begin with the bucket that one real acquire made, and go
on as further acquires would change it. Making them is not measured. Its log lines are formatted, and go nowhere.
"""

import contextlib
import json
import os
import platform
import sys
import time
import types
import warnings
from importlib.metadata import version

STACK = "bench-original-aggregator"
REGION = "us-east-1"
RESOURCE = "gpt-4"
TEMPLATE = "template"
NEVER = 1_000_000_000
LIMITS = ("rpm", "tpm")

os.environ.setdefault("AWS_ACCESS_KEY_ID", "local")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "local")
os.environ["AWS_DEFAULT_REGION"] = REGION
os.environ["TABLE_NAME"] = STACK
warnings.simplefilter("ignore")

import asyncio  # noqa: E402

import boto3  # noqa: E402

from zae_limiter import Limit, RateLimiter, Repository, schema  # noqa: E402
from zae_limiter_aggregator.handler import handler  # noqa: E402

CONTEXT = types.SimpleNamespace(aws_request_id="bench", function_name="bench")


class Driver:
    def open(self, endpoint):
        os.environ["AWS_ENDPOINT_URL_DYNAMODB"] = endpoint
        asyncio.run(self._make_template(endpoint))
        self.requests = self.write_units = 0
        boto3.setup_default_session()
        events = boto3.DEFAULT_SESSION._session.get_component("event_emitter")
        events.register("before-parameter-build.dynamodb.*", self._ask)
        events.register("after-call.dynamodb.*", self._count)
        self.counting = False
        return {"python": platform.python_version(), "zae_limiter": version("zae-limiter"), "boto3": version("boto3")}

    def enter(self, entities, batch):
        self.entities = entities
        self.batch = batch
        self.taken = {}
        self.made = 0
        return {}

    def run(self, records, counting=False):
        self.counting = counting
        self.requests = self.write_units = 0
        wall = cpu = 0.0
        while records > 0:
            event = {"Records": [self._record() for _ in range(min(self.batch, records))]}
            records -= self.batch
            with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
                wall_start, cpu_start = time.perf_counter(), time.process_time()
                answer = handler(event, CONTEXT)
                cpu += time.process_time() - cpu_start
                wall += time.perf_counter() - wall_start
            if answer["body"]["errors"]:
                raise RuntimeError(answer["body"]["errors"][0])
        return {"wall": wall, "cpu": cpu, "requests": self.requests, "writeUnits": self.write_units}

    def _record(self):
        entity = f"entity-{self.made % self.entities}"
        self.made += 1
        taken = self.taken.get(entity, 0)
        self.taken[entity] = taken + 1
        before, after = self._image(entity, taken), self._image(entity, taken + 1)
        return {
            "eventID": str(self.made),
            "eventName": "MODIFY",
            "dynamodb": {
                "Keys": {"PK": after["PK"], "SK": after["SK"]},
                "OldImage": before,
                "NewImage": after,
                "SequenceNumber": str(self.made),
                "ApproximateCreationDateTime": int(time.time()),
            },
        }

    def _image(self, entity, taken):
        image = {name: json.loads(json.dumps(value).replace(TEMPLATE, entity)) for name, value in self.keys.items()}
        image.update(self.rest)
        for limit in LIMITS:
            image[f"b_{limit}_tc"] = {"N": str((1 + taken) * 1000)}
            image[f"b_{limit}_tk"] = {"N": str((NEVER - 1 - taken) * 1000)}
        return image

    async def _make_template(self, endpoint):
        repository = Repository(name=STACK, region=REGION, endpoint_url=endpoint)
        client = await repository._get_client()
        definition = schema.get_table_definition(STACK)
        definition.pop("StreamSpecification", None)
        await client.create_table(**definition)
        await repository.close()
        repository = await Repository.open("bench", stack=STACK, region=REGION, endpoint_url=endpoint)
        await repository.set_system_defaults([Limit.per_minute(name, NEVER) for name in LIMITS])
        async with RateLimiter(repository=repository).acquire(TEMPLATE, RESOURCE, {name: 1 for name in LIMITS}):
            pass
        client = await repository._get_client()
        key = {"PK": {"S": schema.pk_bucket(repository._namespace_id, TEMPLATE, RESOURCE, 0)}, "SK": {"S": schema.sk_state()}}
        image = (await client.get_item(TableName=STACK, Key=key))["Item"]
        await repository.close()
        self.keys = {name: value for name, value in image.items() if TEMPLATE in json.dumps(value)}
        self.rest = {name: value for name, value in image.items() if name not in self.keys}

    def _ask(self, params, **_):
        if self.counting:
            params["ReturnConsumedCapacity"] = "INDEXES"

    def _count(self, parsed, **_):
        if not self.counting:
            return
        self.requests += 1
        if parsed.get("Error", {}).get("Code") == "ConditionalCheckFailedException":
            self.write_units += 1  # AWS bills it; the engine's reply does not tell.
        self.write_units += (parsed.get("ConsumedCapacity") or {}).get("CapacityUnits", 0)


def main():
    driver = Driver()
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = getattr(driver, command.pop("do"))(**command)
        except Exception as error:  # The benchmark decides what to do about it.
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
