"""Runs LocalStack without Docker and without anything that it would fetch.

    python run_localstack.py NODE ENGINE

DynamoDB is ENGINE, a script for NODE that takes --port; functions run in a process of NODE for each invocation. LocalStack binds every
interface: run this in a network namespace of its own.
"""

import os
import subprocess
import sys
from pathlib import Path

from localstack.services.dynamodb.server import DynamodbServer
from localstack.services.lambda_.invocation import execution_environment, version_manager
from localstack.services.lambda_.invocation.lambda_models import InvocationResult
from localstack.services.lambda_.invocation.runtime_executor import RuntimeExecutor
from localstack.utils.common import ShellCommandThread

NODE, ENGINE = sys.argv[1:]
INVOKE = str(Path(__file__).with_name("invoke.mjs"))
HOST = "127.0.0.1"


def start_engine(self):
    thread = ShellCommandThread([NODE, ENGINE, "--port", str(self.port)], name="dynamodb")
    thread.start()
    return thread


class NodeExecutor(RuntimeExecutor):
    """Runs an invocation in a process of its own."""

    @classmethod
    def prepare_version(cls, function_version):
        function_version.config.code.prepare_for_execution()

    @classmethod
    def cleanup_version(cls, function_version):
        function_version.config.code.destroy_cached()

    def start(self, env_vars):
        self.variables = {name: str(value) for name, value in env_vars.items() if value is not None}

    def stop(self):
        pass

    def get_address(self):
        return HOST

    def get_endpoint_from_executor(self):
        return HOST

    def get_runtime_endpoint(self):
        return f"http://{HOST}:4566/_localstack_lambda/{self.id}"

    def get_logs(self):
        return ""

    def invoke(self, payload):
        code = self.function_version.config.code.get_unzipped_code_location()
        variables = {**self.variables, "PATH": os.environ["PATH"], "AWS_ENDPOINT_URL": f"http://{HOST}:4566"}
        done = subprocess.run([NODE, INVOKE, f"{code}/index.mjs"], input=payload["payload"], env=variables, capture_output=True, text=True)
        # What the function prints goes to standard error, and its answer to standard output.
        print(done.stderr, flush=True)
        is_error = done.returncode != 0
        answer = done.stderr if is_error else done.stdout
        return InvocationResult(payload["invoke-id"], answer.encode(), is_error, done.stderr)


DynamodbServer.do_start_thread = start_engine
for module in (execution_environment, version_manager):
    module.get_runtime_executor = lambda: NodeExecutor

import localstack.services.lambda_.provider as provider  # noqa: E402

provider.get_runtime_executor = lambda: NodeExecutor
sys.argv = sys.argv[:1]

from localstack.runtime.main import main  # noqa: E402

main()
