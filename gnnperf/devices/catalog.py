"""Devices as data: this host, the catalog that ships with gnnperf, and YAML files of the user's."""

from __future__ import annotations

from pathlib import Path

from gnnperf.devices.host import describe_host
from gnnperf.devices.spec import DeviceSpec
from gnnperf.errors import InputError

HOST = "host"
_CATALOG = Path(__file__).parent / "catalog"


def list_devices() -> dict[str, DeviceSpec]:
    """This host (as "host") and every entry of the catalog, by the name `load_device` takes."""
    entries = {path.stem: read_device(path) for path in sorted(_CATALOG.glob("*.yaml"))}
    return {HOST: describe_host(), **entries}


def load_device(name: str) -> DeviceSpec:
    """A device by name ("host" or one of the catalog) or by the path of a YAML file.

    Raises InputError when there is none, or when the file is not a valid description.
    """
    if name == HOST:
        return describe_host()
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        return read_device(path)
    if (_CATALOG / f"{name}.yaml").is_file():
        return read_device(_CATALOG / f"{name}.yaml")
    known = ", ".join([HOST, *sorted(p.stem for p in _CATALOG.glob("*.yaml"))])
    raise InputError(f"no device {name!r}; give one of {known}, or the path of a .yaml file")


def read_device(path: Path) -> DeviceSpec:
    """Read and check one YAML description. Raises InputError."""
    import yaml  # only here: the measuring server imports this package and stays light

    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read device file {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        first = str(error).replace("\n", " ")
        raise InputError(f"{path}: expected YAML, got {first}") from None
    return DeviceSpec.from_dict(values, str(path))
