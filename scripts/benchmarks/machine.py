"""What tables are measured on and with."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gnnperf.devices import describe_host
from gnnperf.measure.confine import available_threads


def setup(*packages: str) -> dict[str, Any]:
    """The machine, the threads that are used, and versions of packages."""
    host = describe_host()
    return {
        "device": host.fingerprint,
        "name": host.name,
        "cores": host.cores,
        "threads": available_threads(),
        "versions": {package: _version(package) for package in packages},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
