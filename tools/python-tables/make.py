"""Has a release of the Python zae-limiter write a table, and stores the table as lines of JSON.

It runs against a local DynamoDB engine, at times that the script sets, so that the data is the same
whenever it is made. What a release does not know is left out.
"""

import json
import os
import sys
from datetime import UTC, datetime, timedelta

import boto3
import time_machine

ENDPOINT, OUTPUT = sys.argv[1:]
TABLE = "python-table"
WINDOWS = ["hourly", "daily"]
os.environ.update(
    AWS_ACCESS_KEY_ID="local",
    AWS_SECRET_ACCESS_KEY="local",
    AWS_DEFAULT_REGION="us-east-1",
    AWS_ENDPOINT_URL=ENDPOINT,
)

# It is imported late, because its parts read the environment when they are.
from zae_limiter import Limit, OnUnavailable, SyncRateLimiter, SyncRepository, __version__  # noqa: E402
from zae_limiter_aggregator.processor import process_stream_records  # noqa: E402

FEATURES = hasattr(Limit, "quota")
client = boto3.client("dynamodb")
streams = boto3.client("dynamodbstreams")


class Aggregator:
    """Hands what is new in the stream to the release's own aggregator, at the time of the script."""

    def __init__(self) -> None:
        self.arn = client.describe_table(TableName=TABLE)["Table"]["LatestStreamArn"]
        self.seen: set[str] = set()

    def run(self, now: datetime) -> None:
        records = [record for record in self.read() if record["eventID"] not in self.seen]
        self.seen.update(record["eventID"] for record in records)
        for record in records:
            record["dynamodb"]["ApproximateCreationDateTime"] = now.timestamp()
        result = process_stream_records(records, TABLE, WINDOWS)
        if result.errors:
            raise RuntimeError(result.errors)

    def read(self) -> list:
        records = []
        for shard in streams.describe_stream(StreamArn=self.arn)["StreamDescription"]["Shards"]:
            iterator = streams.get_shard_iterator(
                StreamArn=self.arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
            while iterator:
                page = streams.get_records(ShardIterator=iterator, Limit=1000)
                records += page["Records"]
                iterator = page.get("NextShardIterator") if page["Records"] else None
        return records


def use(limiter, entity: str, resource: str, consume: dict, adjust: dict | None = None) -> None:
    with limiter.acquire(entity_id=entity, resource=resource, consume=consume) as lease:
        if adjust:
            lease.adjust(**adjust)


def items() -> list:
    found = []
    for page in client.get_paginator("scan").paginate(TableName=TABLE, ConsistentRead=True):
        found += page["Items"]
    return sorted(found, key=lambda item: (item["PK"]["S"], item["SK"]["S"]))


def bucket_count(entity: str, resource: str) -> int:
    key = f"/BUCKET#{entity}#{resource}#"
    return sum(1 for item in items() if key in item["PK"]["S"])


def made_with(clock) -> dict:
    now = datetime(2026, 2, 1, 0, 10, tzinfo=UTC)
    clock.move_to(now)

    def later(**span) -> None:
        nonlocal now
        now += timedelta(**span)
        clock.move_to(now)

    SyncRepository(TABLE, "us-east-1", ENDPOINT, _skip_deprecation_warning=True).create_table()
    aggregator = Aggregator()

    repository = SyncRepository.open("tenant", stack=TABLE, region="us-east-1")
    limiter = SyncRateLimiter(repository=repository)
    limiter.set_system_defaults([Limit.per_minute("rpm", 100)], on_unavailable=OnUnavailable.ALLOW)
    limiter.set_resource_defaults(
        "gpt-4", [Limit.per_minute("rpm", 60, burst=90), Limit.per_hour("tpm", 100_000)]
    )
    limiter.set_resource_defaults("team/claude-3", [Limit.per_day("requests", 1000)])
    limiter.create_entity("org", name="The organisation", metadata={"tier": "gold", "seats": 5})
    limiter.create_entity("key-1", name="First key", parent_id="org", cascade=True)
    limiter.create_entity("key-2", parent_id="org")
    limiter.create_entity("gone")
    limiter.set_limits("org", [Limit.per_minute("rpm", 500)], resource="gpt-4")
    limiter.set_limits("key-2", [Limit.per_minute("rpm", 7)])

    # An hour, a day and a month begin together: the first of February.
    use(limiter, "key-1", "gpt-4", {"rpm": 1, "tpm": 500})
    use(limiter, "key-1", "gpt-4", {"rpm": 2, "tpm": 700})
    use(limiter, "key-2", "gpt-4", {"rpm": 1})
    use(limiter, "gone", "team/claude-3", {"requests": 3})
    aggregator.run(now)

    # Later that day, and not in its first hour.
    later(hours=5)
    use(limiter, "key-3", "gpt-4", {"rpm": 1, "tpm": 1000})
    use(limiter, "key-3", "gpt-4", {"rpm": 1, "tpm": 1000})
    use(limiter, "key-1", "gpt-4", {"rpm": 3, "tpm": 900})
    use(limiter, "key-1", "gpt-4", {"rpm": 3, "tpm": 900})
    aggregator.run(now)
    limiter.delete_entity("gone")

    # The next day has calls in its first hour too, which the original files under one key.
    later(hours=19, minutes=10)
    for _ in range(3):
        use(limiter, "key-1", "gpt-4", {"rpm": 1, "tpm": 1000})
        later(seconds=61)
        aggregator.run(now)
    later(hours=3)
    for _ in range(2):
        use(limiter, "key-1", "gpt-4", {"rpm": 4, "tpm": 2000})
        later(seconds=61)
        aggregator.run(now)

    # Several shards of one bucket, which were used unequally.
    for _ in range(4):
        use(limiter, "hot", "gpt-4", {"rpm": 2, "tpm": 300})
    repository.bump_shard_count("hot", "gpt-4", 1)
    aggregator.run(now)
    repository.bump_shard_count("hot", "gpt-4", 2)
    # Without a consumption in the same batch, 0.10.3 creates no shards.
    use(limiter, "hot", "gpt-4", {"rpm": 2, "tpm": 300})
    aggregator.run(now)
    for _ in range(12):
        later(milliseconds=700)
        use(limiter, "hot", "gpt-4", {"rpm": 1, "tpm": 900})
    if bucket_count("hot", "gpt-4") != 4:
        raise RuntimeError(f"the bucket of hot has {bucket_count('hot', 'gpt-4')} shards, not four")

    # A debt, by a call that cost far more than its estimate.
    use(limiter, "debtor", "gpt-4", {"rpm": 1, "tpm": 1000}, {"tpm": 250_000})

    if FEATURES:
        use_features(repository, limiter)

    # What the provisioner of declared limits remembers.
    repository.put_provisioner_state(
        {
            "managed_system": True,
            "managed_resources": ["gpt-4"],
            "managed_entities": {"org": ["gpt-4"]},
            "last_applied": now.isoformat(),
            "applied_hash": "sha256:0123456789abcdef",
        }
    )
    deleted = SyncRepository.open("deleted-tenant", stack=TABLE, region="us-east-1")
    SyncRateLimiter(repository=deleted).create_entity("left-behind")
    repository.delete_namespace("deleted-tenant")

    # What the release itself says, one second later.
    later(seconds=1)
    asked = [("key-1", "gpt-4"), ("key-2", "gpt-4"), ("debtor", "gpt-4"), ("org", "gpt-4")]
    available = {
        f"{entity} {resource}": limiter.available(entity_id=entity, resource=resource)
        for entity, resource in asked
    }
    table = client.describe_table(TableName=TABLE)["Table"]
    wanted = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "LocalSecondaryIndexes")
    return {
        "release": __version__,
        "askedAtMs": int(now.timestamp() * 1000),
        "available": available,
        "table": {name: shape(table[name]) for name in wanted if table.get(name)},
        "items": items(),
    }


def use_features(repository, limiter) -> None:
    """What the release has and this library has not: it must not be lost unnoticed."""
    from zae_limiter.schedule import ScheduleEntry

    repository.set_version_record(
        schema_version="0.10.0", lambda_version=__version__, updated_by="make.py"
    )
    limiter.set_resource_defaults(
        "special",
        [
            Limit.per_minute("rpm", 60).with_schedule(
                (ScheduleEntry(cron="0 0-6 * * *", refill_amount=1),)
            ),
            Limit.quota("monthly", 1000, cron="0 0 1 * *"),
            Limit.quota("session", 50, reset_after=timedelta(hours=5)),
            Limit.per_minute("watched", 10, soft=True),
        ],
    )
    use(limiter, "visitor", "special", {"rpm": 1, "monthly": 10, "session": 2, "watched": 30})
    limiter.set_resource_defaults("closed", [Limit.per_minute("rpm", 5)])
    repository.disable_resource("closed")


def shape(declarations: list) -> list:
    """An index without its state."""
    kept = ("AttributeName", "AttributeType", "KeyType", "IndexName", "KeySchema", "Projection")
    return [{name: each[name] for name in kept if name in each} for each in declarations]


with time_machine.travel(datetime(2026, 2, 1, tzinfo=UTC), tick=False) as traveller:
    made = made_with(traveller)

# Into a file, because the aggregator logs to standard output: a head, then one item a line.
with open(OUTPUT, "w", encoding="utf-8") as file:
    found = made.pop("items")
    for line in [made, *found]:
        file.write(json.dumps(line, sort_keys=True) + "\n")
