from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gnnperf.devices import (
    DeviceSpec,
    VectorUnit,
    describe_host,
    list_devices,
    load_device,
    read_device,
    vectors_of,
)
from gnnperf.errors import InputError

VALUES: dict[str, Any] = {
    "kind": "cpu", "name": "Some CPU", "arch": "x86_64", "isa": "avx2", "cores": 8, "threads": 16,
    "l2_bytes": 1048576, "bandwidth_gbps": 50, "source": "https://example.org/datasheet",
}  # fmt: skip


def test_round_trip() -> None:
    spec = DeviceSpec.from_dict(VALUES, "here")
    assert spec.to_dict() == VALUES
    assert isinstance(spec.bandwidth_gbps, float)
    assert spec.fingerprint == "cpu/x86_64/avx2"
    assert spec.vectors == vectors_of(spec.fingerprint) == VectorUnit(bytes=32, registers=16)
    assert DeviceSpec.from_dict(spec.to_dict(), "here") == spec


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cores": 0}, "cores: expected a positive integer, got 0"),
        ({"cores": 2.5}, "cores: expected a positive integer, got 2.5"),
        ({"cores": True}, "cores: expected a positive integer, got True"),
        ({"cores": "eight"}, "cores: expected a positive integer, got 'eight'"),
        ({"bandwidth_gbps": -1}, "bandwidth_gbps: expected a positive number, got -1"),
        ({"bandwidth_gbps": float("nan")}, "bandwidth_gbps: expected a positive number, got nan"),
        ({"bandwidth_gbps": float("inf")}, "bandwidth_gbps: expected a positive number, got inf"),
        ({"kind": "tpu"}, "kind: expected 'cpu' or 'gpu', got 'tpu'"),
        ({"name": " "}, "name: expected a text, got ' '"),
        ({"isa": 5}, "isa: expected a text, got 5"),
        ({"frequency": 3}, "unknown field 'frequency'; known: kind, name"),
    ],
)
def test_values_are_checked(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        DeviceSpec.from_dict({**VALUES, **change}, "here")
    assert str(caught.value).startswith(f"here: {message}")


def test_required_fields() -> None:
    with pytest.raises(InputError, match="here: field 'source' is missing; required: kind, name"):
        DeviceSpec.from_dict({k: v for k, v in VALUES.items() if k != "source"}, "here")
    with pytest.raises(InputError, match="expected a mapping of device fields, got list"):
        DeviceSpec.from_dict([], "here")  # type: ignore[arg-type]


def test_yaml_files(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(VALUES))
    assert load_device(str(path)) == DeviceSpec.from_dict(VALUES, "")
    path.write_text("kind: [")
    with pytest.raises(InputError, match=r"mine\.yaml: expected YAML, got"):
        read_device(path)
    path.write_text("")
    with pytest.raises(InputError, match=r"mine\.yaml: expected a mapping of device fields, got NoneType"):
        read_device(path)
    with pytest.raises(InputError, match=r"cannot read device file .*: No such file"):
        load_device(str(tmp_path / "other.yaml"))


def test_names() -> None:
    known = list_devices()
    assert known["host"] == load_device("host") == describe_host()
    for name, spec in known.items():
        assert load_device(name) == spec
        assert spec.source
    with pytest.raises(InputError, match="no device 'abacus'; give one of host"):
        load_device("abacus")
