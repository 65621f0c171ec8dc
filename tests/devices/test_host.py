from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gnnperf.devices import MachineLock, describe_host, find_compiler, gnnperf_cache_dir, probe
from gnnperf.devices.host import _bytes, _describe, probe_file
from gnnperf.devices.probe import _Clocks
from gnnperf.errors import InputError, MeasureError

PROBE = sys.modules[_Clocks.__module__]  # `gnnperf.devices.probe` is the function


def test_this_host_is_described_without_measuring() -> None:
    host = describe_host()
    assert host.kind == "cpu"
    assert host.threads == len(os.sched_getaffinity(0))
    assert 1 <= host.cores <= host.threads
    assert host.fingerprint == f"cpu/{os.uname().machine}/{host.isa}"
    assert host.memory_bytes is not None
    assert host.bandwidth_gbps is None


def test_cache_sizes_are_in_bytes() -> None:
    assert [_bytes(text) for text in ("48K", "1M", "1G", "512")] == [49152, 1 << 20, 1 << 30, 512]


def test_probe_measures_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PROBE, "_array_bytes", lambda _: 1 << 24)  # however large the caches are
    measured = probe()
    rates = (
        measured.peak_gflops_fp32,
        measured.peak_gflops_fp64,
        measured.bandwidth_gbps,
        measured.peak_gflops_fp32_1_thread,
        measured.peak_gflops_fp64_1_thread,
        measured.bandwidth_gbps_1_thread,
    )
    assert all(rate is not None and rate > 0 for rate in rates)
    assert measured.source.startswith("measured by gnnperf devices probe on ")
    assert describe_host() == measured
    monkeypatch.setenv("GNNPERF_CXX", "no-such-compiler")  # not needed a second time
    assert probe() == measured
    with pytest.raises(InputError, match="not found; install"):
        probe(refresh=True)


def peaks(monkeypatch: pytest.MonkeyPatch, gflops: float, others: float, load: float) -> None:
    """A machine on which probes would find such peaks, beside such a load."""
    names = ("peak_gflops_fp32", "peak_gflops_fp64", "bandwidth_gbps")
    found = {name + suffix: gflops for name in names for suffix in ("", "_1_thread")}
    monkeypatch.setattr(PROBE, "_run", lambda command: json.dumps(found))
    monkeypatch.setattr(_Clocks, "share_of_others", lambda *_: others)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))


def test_peaks_of_a_busy_machine_are_doubted_and_measured_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peaks(monkeypatch, 100.0, others=0.5, load=9.0)
    first = probe()
    assert first == describe_host()
    assert first.provenance["bandwidth_gbps"].doubtful == (
        "measured while other programs used 50% of what was free of the processors"
    )

    peaks(monkeypatch, 200.0, others=0.0, load=9.0)
    assert probe() == first  # still busy

    peaks(monkeypatch, 90.0, others=0.0, load=0.0)
    again = probe()
    assert (again.bandwidth_gbps, again.provenance) == (100.0, {})  # a ceiling: the higher stays

    peaks(monkeypatch, 80.0, others=0.0, load=0.0)
    assert probe() == again  # once
    assert probe(refresh=True).bandwidth_gbps == 80.0


def test_the_share_of_others_is_of_what_this_process_leaves() -> None:
    before = _Clocks(own_s=1.0, busy_s=10.0, total_s=100.0)
    assert _Clocks(5.0, 14.0, 108.0).share_of_others(before) == 0.0
    assert _Clocks(5.0, 17.0, 108.0).share_of_others(before) == 0.75
    now = _Clocks.now()
    assert 0 <= now.busy_s <= now.total_s


def test_a_damaged_cache_is_as_good_as_none() -> None:
    path = probe_file(_describe())
    for text in ("{", "[]", '{"kind": "cpu"}'):
        path.write_text(text)
        assert describe_host() == _describe()


def test_a_compiler_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "g++"
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && echo fake 1.0 && exit 0\necho broken >&2\nexit 1\n')
    fake.chmod(0o755)
    monkeypatch.setenv("GNNPERF_CXX", str(fake))
    assert find_compiler() == (str(fake), "fake 1.0")
    with pytest.raises(MeasureError, match="probing this machine failed: broken"):
        probe()


def test_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GNNPERF_CACHE", str(tmp_path / "a" / "b"))
    assert gnnperf_cache_dir() == tmp_path / "a" / "b"
    assert gnnperf_cache_dir().is_dir()
    monkeypatch.delenv("GNNPERF_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert gnnperf_cache_dir() == tmp_path / "xdg" / "gnnperf"
    monkeypatch.setenv("GNNPERF_CACHE", os.devnull + "/cache")
    with pytest.raises(InputError, match=r"cannot create the cache folder .* set GNNPERF_CACHE"):
        gnnperf_cache_dir()


def test_the_machine_lock_excludes_other_processes_and_ends_with_its_holder() -> None:
    code = "from gnnperf.devices import MachineLock; import sys\n"
    code += "MachineLock().acquire(); print('held', flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    lock = MachineLock()
    assert not lock.acquire(blocking=False)
    holder.kill()
    holder.communicate()
    with lock:
        assert not MachineLock().acquire(blocking=False)
    assert lock.acquire(blocking=False)
    lock.release()


def test_the_machine_lock_of_another_user_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write everybody's files: what opens them says that it may not."""
    path, opened = str(tmp_path / "lock"), os.open

    def refuse(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_RDWR:
            raise PermissionError(13, "Permission denied", path)
        return opened(path, flags, mode)

    with MachineLock(path) as held:
        monkeypatch.setattr(os, "open", refuse)
        assert not MachineLock(path).acquire(blocking=False)
        held.release()
        with MachineLock(path):
            assert not MachineLock(path).acquire(blocking=False)


def test_the_machine_lock_is_taken_in_turn() -> None:
    order: list[str] = []
    lock = MachineLock()
    with lock:
        thread = threading.Thread(target=lambda: (MachineLock().acquire(), order.append("second")))
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join(20)
    assert order == ["first", "second"]
