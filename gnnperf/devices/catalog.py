"""Devices as data: this host, the catalog that ships with gnnperf, and YAML files of the user's."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gnnperf.devices.host import describe_host
from gnnperf.devices.names import names_of, plain, resolve, similar
from gnnperf.devices.spec import DeviceSpec
from gnnperf.documents import from_yaml, text_of
from gnnperf.errors import InputError

HOST = "host"
_CATALOG = Path(__file__).parent / "catalog"


def list_devices() -> dict[str, DeviceSpec]:
    """This host (as "host") and every entry of the catalog, by the name `load_device` takes."""
    return {HOST: describe_host(), **_catalog()}


def load_device(name: str) -> DeviceSpec:
    """A device by name ("host", or one of the catalog), or by the path of a YAML file.

    Names of the catalog are those of its files, of the devices, and their aliases, in either case ("l4",
    "NVIDIA L4", "Tesla T4"), and what else means one of them alone ("H100 SXM5"; see `names.resolve`).
    Raises InputError when there is none or several, or when the file is not a valid description.
    """
    if name == HOST:
        return describe_host()
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        return read_device(path)
    if (device := _of_catalog(name)) is not None:
        return device
    near = similar(name, _catalog())
    known = ", ".join(near or [HOST, *_catalog()])
    listed = " (`gnnperf devices list` shows all)" if near else ""
    raise InputError(f"no device {name!r}; give one of {known}{listed}, or the path of a .yaml file")


def read_device(path: Path) -> DeviceSpec:
    """Read and check one YAML description. Raises InputError."""
    return DeviceSpec.from_dict(_read_yaml(path), str(path))


def read_devices(path: Path) -> dict[str, DeviceSpec]:
    """Read a YAML file of several devices: name -> description, or -> a name or path for `load_device`.

    A list of names, and a file of one description, are taken as well; the keys are then the devices' names.
    Raises InputError.
    """
    values = _read_yaml(path)
    if isinstance(values, list) and all(isinstance(name, str) for name in values):
        values = {name: name for name in values}
    if not isinstance(values, Mapping) or not values:
        raise InputError(f"{path}: expected a mapping of device names to descriptions, or a list of names")
    if "kind" in values:
        device = DeviceSpec.from_dict(values, str(path))
        return {device.name: device}
    devices = {}
    for name, value in values.items():
        if isinstance(value, str):
            near = path.parent / value  # as a path, it is one beside this file
            devices[str(name)] = load_device(str(near) if near.is_file() else value)
        else:
            devices[str(name)] = DeviceSpec.from_dict(
                {"name": str(name), **value} if isinstance(value, Mapping) else value, f"{path}: {name}"
            )
    return devices


def find_device(name: str, devices: Mapping[str, DeviceSpec]) -> DeviceSpec | None:
    """The device that goes by `name` among `devices` (by key, name or alias), else in the catalog, as
    `load_device` finds it there; None where there is none. Raises InputError where there are several."""
    wanted = plain(name)
    for key, device in devices.items():
        if wanted in map(plain, names_of(key, device)):
            return device
    return _of_catalog(name)


def known_device(name: str, devices: Mapping[str, DeviceSpec]) -> DeviceSpec:
    """As `find_device`, of a table's GPU. Raises InputError where there is none."""
    device = find_device(name, devices)
    if device is None:
        raise InputError(f"no device {name!r}; describe it in the file that --devices names")
    return device


def peer(device: DeviceSpec) -> DeviceSpec | None:
    """A device of the catalog with the same target, else of the same architecture: for what `device` itself
    does not say. None where there is none."""
    others = _catalog().values()
    same_isa = (other for other in others if other.kind == device.kind and other.isa == device.isa)
    same_arch = (other for other in others if other.kind == device.kind and other.arch == device.arch)
    return next(same_isa, None) or next(same_arch, None)


def _read_yaml(path: Path) -> Any:
    try:
        return from_yaml(text_of(path))
    except OSError as error:
        raise InputError(f"cannot read device file {path}: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{path}: expected YAML, got {error}") from None


@functools.cache
def _catalog() -> Mapping[str, DeviceSpec]:
    return {path.stem: read_device(path) for path in sorted(_CATALOG.glob("*.yaml"))}


@functools.cache
def _names() -> Mapping[str, str]:
    """Every name of a device of the catalog, as `plain` has it -> the name of its file."""
    return {plain(name): key for key, device in _catalog().items() for name in names_of(key, device)}


@functools.cache
def _of_catalog(name: str) -> DeviceSpec | None:
    path = _CATALOG / f"{name.lower()}.yaml"
    if (
        len(name) < 100 and name.replace("-", "").isalnum() and path.is_file()
    ):  # one file is read sooner than all of them
        return read_device(path)
    key = _names().get(plain(name)) or resolve(name, _catalog())
    return None if key is None else _catalog()[key]
