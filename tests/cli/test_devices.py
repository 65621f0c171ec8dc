from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

from gnnperf.cli.main import run
from gnnperf.devices import DeviceSpec, describe_host
from gnnperf.devices.probe import _Clocks


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty one. Probes go through little memory, however large the caches of the machine."""
    monkeypatch.setenv("GNNPERF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys.modules[_Clocks.__module__], "_array_bytes", lambda _: 1 << 24)


def test_list(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["devices", "list", "--json"]) == 0
    host = json.loads(capfd.readouterr().out)["devices"][0]
    assert (host["device"], host["name"]) == ("host", describe_host().name)
    assert run(["devices", "list"]) == 0
    assert describe_host().fingerprint in capfd.readouterr().out


def test_show(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["devices", "show", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["fingerprint"] == describe_host().fingerprint
    spec = DeviceSpec(
        kind="cpu", name="Mine", arch="x", isa="y", cores=1, threads=2, bandwidth_gbps=12.3456, source="me"
    )
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(spec.to_dict()))
    assert run(["devices", "show", str(path)]) == 0
    shown = capfd.readouterr().out
    assert "Mine" in shown
    assert "12.35" in shown


def test_a_name_that_does_not_exist(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["devices", "show", "abacus"]) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("gnnperf: no device 'abacus'; give one of host")


def test_probe(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["devices", "probe", "--json"]) == 0
    measured = json.loads(capfd.readouterr().out)
    assert measured["peak_gflops_fp32"] > 0
    assert run(["devices", "list"]) == 0
    assert "?" not in capfd.readouterr().out.splitlines()[1]


def test_what_was_measured_on_a_busy_machine_is_told_to_be_doubtful(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Clocks, "share_of_others", lambda *_: 0.85)
    assert run(["devices", "probe"]) == 0
    shown = capfd.readouterr()
    assert "measured while other programs used 85% of what was free" in shown.err
    assert run(["devices", "list"]) == 0
    assert "~" in capfd.readouterr().out.splitlines()[1]


def test_gpus_of_the_catalog(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["devices", "list"]) == 0
    assert "gpu/ada/sm_89" in capfd.readouterr().out
    assert run(["devices", "show", "Tesla P4"]) == 0
    shown = capfd.readouterr().out
    assert "board_power_w" in shown
    assert "50 W variant" in shown
    assert run(["devices", "show", "l4", "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["board_power_w"] == 72
    assert document["provenance"]["board_power_w"]["source"]
