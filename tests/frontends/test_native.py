"""Code for this machine has vectors of this machine."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from nests import examples

from gnnperf.devices import describe_host
from gnnperf.frontends import native
from gnnperf.schedules.recipes import Recipe

TILED = Recipe(order="blocked", tile_q=32, tile_p=64, tile_r=32, register_q=3, register_p=2)


@pytest.mark.parametrize(("isa", "doubles"), [("avx512", 8), ("avx2", 4), ("neon", 2)])
def test_vectors_are_those_of_the_machine(isa: str, doubles: int, monkeypatch: pytest.MonkeyPatch) -> None:
    host = replace(describe_host(), isa=isa)
    monkeypatch.setattr(native, "describe_host", lambda: host)
    source = native.native_function(TILED, examples.gemm(64, 96, 32), "product").source
    _, _, function = source.partition('extern "C"')
    assert {int(width) for width in re.findall(r"vec<double, (\d+)>", source)} == {doubles}, function
