"""What this machine can do at most: peak FLOP rate and memory bandwidth, measured by probe.cpp."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from gnnperf.devices.host import _describe, describe_host, probe_file
from gnnperf.devices.lock import MachineLock
from gnnperf.devices.spec import DeviceSpec
from gnnperf.devices.toolchain import find_compiler
from gnnperf.errors import MeasureError

_FLAGS = ("-O3", "-march=native", "-ffp-contract=fast", "-fopenmp", "-std=c++17")
_TIMEOUT_S = 120.0


def probe(refresh: bool = False) -> DeviceSpec:
    """This machine with its measured peaks; some five seconds the first time, then from the cache.

    refresh: measure again. Raises InputError without a compiler, MeasureError when the probe fails.
    """
    known = describe_host()
    if known.bandwidth_gbps is not None and not refresh:
        return known
    host = _describe()
    compiler, version = find_compiler()
    with tempfile.TemporaryDirectory(prefix="gnnperf-probe-") as folder:
        program = str(Path(folder) / "probe")
        _run([compiler, *_FLAGS, str(Path(__file__).with_name("probe.cpp")), "-o", program])
        with MachineLock():
            measured = json.loads(_run([program, str(host.threads), str(_array_bytes(host))]))
    today = datetime.now(UTC).date().isoformat()
    source = f"measured by gnnperf devices probe on {today}, {version} {' '.join(_FLAGS)}"
    spec = dataclasses.replace(host, **measured, source=source)
    _keep(probe_file(host), json.dumps(spec.to_dict(), indent=1))
    return spec


def _array_bytes(host: DeviceSpec) -> int:
    """STREAM's rule, each array at least four times the last-level cache, within an eighth of memory."""
    wanted = max(4 * (host.l3_bytes or 0), 64 << 20)
    return min(wanted, (host.memory_bytes or 8 * wanted) // 8)


def _run(command: list[str]) -> str:
    environment = {**os.environ, "OMP_PROC_BIND": "spread", "OMP_PLACES": "threads", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=_TIMEOUT_S, env=environment
        )
    except subprocess.TimeoutExpired:
        raise MeasureError(f"probing this machine took longer than {_TIMEOUT_S:g} s") from None
    except subprocess.CalledProcessError as error:
        first = (error.stderr or "").strip().partition("\n")[0] or f"exit code {error.returncode}"
        raise MeasureError(f"probing this machine failed: {first}") from None
    return done.stdout


def _keep(path: Path, text: str) -> None:
    """Write whole or not at all. A cache that cannot be written costs only the next probe its time."""
    with (
        contextlib.suppress(OSError),
        tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file,
    ):
        file.write(text)
        file.close()
        Path(file.name).replace(path)
