"""A tunable kernel with one configuration, as it is written on a command line."""

from __future__ import annotations

from pathlib import Path

from gnnperf.errors import InputError
from gnnperf.frontends.gpu_kernels.description import Description, find_description, list_descriptions
from gnnperf.frontends.gpu_kernels.plan import plan


def is_tunable(text: str) -> bool:
    """Whether a text means a tunable kernel: the name of one, or a YAML file."""
    name = text.partition(":")[0]
    return name in list_descriptions() or Path(name).suffix in (".yaml", ".yml")


def parse_configuration(text: str) -> tuple[Description, dict[str, int]]:
    """A kernel and what of its parameters and sizes is given: "gemm:MWG=64,NWG=32,M=1024", "mine.yaml".

    A parameter that is left out has its first value. Raises InputError: no such kernel, parameter or size,
    or a configuration that the kernel's constraints forbid.
    """
    name, _, written = text.partition(":")
    description, given = find_description(name), dict[str, int]()
    for part in filter(None, written.split(",")):
        key, _, value = part.partition("=")
        if not value.isdecimal():
            raise InputError(f"{text}: expected parameters and sizes as NAME=64,OTHER=2, got {part!r}")
        given[key.strip()] = int(value)
    values = plan(description, [given]).values
    if broken := [rule.text for rule in description.constraints if not rule(values, text)[0]]:
        raise InputError(
            f"{text}: expected a configuration in which {broken[0]}; see the kernel's constraints"
        )
    return description, given
