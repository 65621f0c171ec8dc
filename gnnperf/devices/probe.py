"""What this machine can do at most: peak FLOP rate and memory bandwidth, measured by probe.cpp."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gnnperf.devices.host import _describe, describe_host, probe_file
from gnnperf.devices.lock import MachineLock
from gnnperf.devices.spec import DeviceSpec
from gnnperf.devices.toolchain import find_compiler
from gnnperf.documents import replacing
from gnnperf.errors import MeasureError

_FLAGS = ("-O3", "-march=native", "-ffp-contract=fast", "-fopenmp", "-std=c++17")
_TIMEOUT_S = 120.0


_BUSY = 0.2
"""Share of the processors' free time that others used, from which on what was measured is doubtful."""


def probe(refresh: bool = False) -> DeviceSpec:
    """This machine with its measured peaks; some five seconds the first time, then from the cache.

    Peaks that were measured while other programs ran are doubtful, and measured again when these have ended;
    the higher ones are kept. refresh: measure again in any case, and forget what was known. Raises InputError
    without a compiler, MeasureError when the probe fails.
    """
    known = describe_host()
    doubtful = any(value.doubtful for value in known.provenance.values())
    idle = os.getloadavg()[0] < _BUSY * known.threads
    if known.bandwidth_gbps is not None and not refresh and not (doubtful and idle):
        return known
    host = _describe()
    compiler, version = find_compiler()
    with tempfile.TemporaryDirectory(prefix="gnnperf-probe-") as folder:
        program = str(Path(folder) / "probe")
        _run([compiler, *_FLAGS, str(Path(__file__).with_name("probe.cpp")), "-o", program])
        with MachineLock():
            before = _Clocks.now()
            measured = json.loads(_run([program, str(host.threads), str(_array_bytes(host))]))
            others = _Clocks.now().share_of_others(before)
    if not refresh:
        measured = {name: max(value, getattr(known, name) or 0.0) for name, value in measured.items()}
    if others > _BUSY:
        doubt = f"measured while other programs used {others:.0%} of what was free of the processors"
        measured = {name: {"value": value, "doubtful": doubt} for name, value in measured.items()}
    today = datetime.now(UTC).date().isoformat()
    source = f"measured by gnnperf devices probe on {today}, {version} {' '.join(_FLAGS)}"
    values = {**host.to_dict(), **measured, "source": source}
    _keep(probe_file(host), json.dumps(values, indent=1))
    return DeviceSpec.from_dict(values, "probe")


@dataclass(frozen=True)
class _Clocks:
    """Seconds so far, of the processors that this process may use. own_s: used by children of this process;
    busy_s: by anybody, other virtual machines too; total_s: that have passed, times the processors."""

    own_s: float
    busy_s: float
    total_s: float

    @classmethod
    def now(cls) -> _Clocks:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        tick_s, busy, total = 1 / os.sysconf("SC_CLK_TCK"), 0, 0
        names = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        for line in Path("/proc/stat").read_text().splitlines():
            name, *fields = line.split()
            if name in names:
                ticks = [int(field) for field in fields[:8]]  # user nice system idle iowait irq softirq steal
                total += sum(ticks)
                busy += sum(ticks) - ticks[3] - ticks[4]
        return cls(usage.ru_utime + usage.ru_stime, tick_s * busy, tick_s * total)

    def share_of_others(self, before: _Clocks) -> float:
        """Of the time since then that this process left free, what others used."""
        own_s, busy_s = self.own_s - before.own_s, self.busy_s - before.busy_s
        return max(0.0, busy_s - own_s) / max(1e-9, self.total_s - before.total_s - own_s)


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
    """A cache that cannot be written costs only the next probe its time."""
    with contextlib.suppress(OSError), replacing(path) as partial:
        partial.write_text(text)
