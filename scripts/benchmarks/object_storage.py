"""Object storage on this machine: moto's server, which speaks S3's protocol and keeps objects in memory."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.error import URLError

from gnnperf.errors import GnnperfError

BUCKET = "stores"
_PATIENCE_S = 60.0


@contextmanager
def object_storage() -> Iterator[str]:
    """The URI of an empty bucket. What LanceDB reads to find it is in the environment meanwhile, of this
    process and of those that it starts. Raises GnnperfError where moto does not start."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    settings = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_REGION": "us-east-1",
    }
    before = {name: os.environ.get(name) for name in settings}
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _make_bucket(endpoint, server)
        os.environ.update(settings)
        yield f"s3://{BUCKET}"
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        server.kill()
        server.wait()


def _make_bucket(endpoint: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    request = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")
    while True:
        try:
            with urllib.request.urlopen(request, timeout=10):
                return
        except (URLError, OSError):
            if server.poll() is not None or time.monotonic() > deadline:
                raise GnnperfError(
                    "no object storage: moto's server does not run; pip install 'moto[server]'"
                ) from None
        time.sleep(0.1)
