"""What the case studies consist of. Kernels are in configs/cases: `NAME.py` holds the DaCe programs and
`SIZES`, `NAME_<competitor>.py` the same functions for each competitor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gnnperf.errors import InputError
from gnnperf.frontends.dace.source import load_attribute
from gnnperf.measure.competitors import PythonFunction
from gnnperf.shipped import shipped


def cases_folder() -> Path:
    """The kernels that come with gnnperf."""
    return shipped("configs/cases")


@dataclass(frozen=True)
class Case:
    """One kernel of a suite: the DaCe program, its sizes, and what it is compared with."""

    name: str
    program: str
    symbols: Mapping[str, int]
    inputs: str | None
    competitors: Mapping[str, PythonFunction]


@dataclass(frozen=True)
class Suite:
    """A case study. `competitors`: Python packages whose versions of the kernels exist."""

    name: str
    competitors: tuple[str, ...]
    folder: Path | None = None
    """Where its files are; None: `cases_folder()`."""

    @property
    def file(self) -> Path:
        return (self.folder or cases_folder()) / f"{self.name}.py"

    def cases(self, wanted: Sequence[str] = ()) -> list[Case]:
        """The kernels called `wanted`, or all, in the order of the file. Raises InputError."""
        sizes: dict[str, dict[str, int]] = load_attribute(self.file, "SIZES", "kernels")
        if unknown := [name for name in wanted if name not in sizes]:
            raise InputError(f"--kernels: expected some of {', '.join(sizes)}, got {unknown[0]!r}")
        return [self._case(name, sizes[name]) for name in sizes if not wanted or name in wanted]

    def _case(self, name: str, symbols: Mapping[str, int]) -> Case:
        inputs = f"inputs_{name}"
        made = f"def {inputs}(" in self.file.read_text(encoding="utf-8")
        return Case(
            name,
            f"{self.file}:{name}",
            symbols,
            f"{self.file}:{inputs}" if made else None,
            {
                package: PythonFunction(self.file.with_name(f"{self.name}_{package}.py"), name, package)
                for package in self.competitors
            },
        )


SUITES: Mapping[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite("stencils", ("numpy", "numba")),
        Suite("dnn", ("torch",)),
        Suite("linalg", ("numpy",)),
    )
}
