"""Opens a table with a release of the Python zae-limiter, and prints what becomes of it."""

import os
import sys

ENDPOINT, TABLE, NAMESPACE = sys.argv[1:]
os.environ.update(
    AWS_ACCESS_KEY_ID="local",
    AWS_SECRET_ACCESS_KEY="local",
    AWS_DEFAULT_REGION="us-east-1",
    AWS_ENDPOINT_URL=ENDPOINT,
)

from zae_limiter import SyncRepository  # noqa: E402

try:
    SyncRepository.open(NAMESPACE, stack=TABLE, region="us-east-1")
    print("opened")
except Exception as error:  # noqa: BLE001
    print(type(error).__name__)
