"""The public surface: what packages export exists and is documented, and imports stay cheap."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys
import typing

import pytest

import gnnperf

PACKAGES = sorted(
    module.name for module in pkgutil.walk_packages(gnnperf.__path__, prefix="gnnperf.") if module.ispkg
)


@pytest.mark.parametrize("name", PACKAGES)
def test_exported_names_exist_and_are_documented(name: str) -> None:
    package = importlib.import_module(name)
    assert package.__doc__, f"{name} has no docstring"
    assert len(package.__all__) == len(set(package.__all__)), f"{name}.__all__ repeats a name"
    for exported in package.__all__:
        value = getattr(package, exported)
        if inspect.isfunction(value) or (inspect.isclass(value) and typing.get_origin(value) is None):
            assert value.__doc__, f"{name}.{exported} has no docstring"
            # A dataclass without a docstring is given its signature for one.
            assert not value.__doc__.startswith(f"{exported}("), f"{name}.{exported} has no docstring"


@pytest.mark.parametrize("name", PACKAGES)
def test_public_functions_are_exported_once(name: str) -> None:
    """What a package's `__init__` imports from itself is in `__all__`."""
    package = importlib.import_module(name)
    own = {
        attribute
        for attribute, value in vars(package).items()
        if not attribute.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and getattr(value, "__module__", "").startswith(f"{name}.")
    }
    assert own <= set(package.__all__)


def test_importing_gnnperf_and_its_command_line_is_cheap() -> None:
    """Neither loads a library that takes a noticeable part of a second."""
    code = "import sys, gnnperf, gnnperf.cli.main; print(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"torch", "dace", "tvm", "numpy", "rich", "lightning"} & set(output.split())
