"""Runs LocalStack, with an engine of ours where it would fetch DynamoDB Local.

    python run_localstack.py ENGINE

ENGINE is a program that takes --host and --port. LocalStack binds every interface: run this in a network namespace of its own.
"""

import sys

from localstack.services.dynamodb.server import DynamodbServer
from localstack.utils.common import ShellCommandThread

ENGINE = sys.argv.pop(1)


def start_engine(self):
    thread = ShellCommandThread([ENGINE, "--host", "127.0.0.1", "--port", str(self.port)], name="dynamodb")
    thread.start()
    return thread


DynamodbServer.do_start_thread = start_engine

from localstack.runtime.main import main  # noqa: E402

main()
