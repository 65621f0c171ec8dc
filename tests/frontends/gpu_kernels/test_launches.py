"""Kernels of several launches: a sum in two passes, and steps that the host counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gnnperf.devices import LAUNCH_GAP_S, load_device
from gnnperf.errors import InputError
from gnnperf.frontends.gpu_kernels import Description, plan, read_description, scheduled_graph, scheduled_nest
from gnnperf.frontends.gpu_kernels.tables import Candidates, GpuTable
from gnnperf.nests import Loop, Statement
from gnnperf.nests.ir import walk
from gnnperf.nn.demand import mean_prediction
from gnnperf.training.demand import DemandFitSettings, fit_demand

SUMS = """
name: sums
sizes: {rows: 4096, columns: 1024, steps: 1}
parameters:
  parts: [1, 32]                # blocks that share a column's rows
  block: [128, 64]
  finish: [64, 128]             # threads of a block of the second launch
constraints: [rows % parts == 0]
buffers:
  x: {dtype: float32, shape: [parts, rows // parts, columns]}
  partial: {dtype: float32, shape: [parts, columns]}
  y: {dtype: float32, shape: [columns]}
loops:
  - {axis: p, extent: parts, bind: block.y}
  - {axis: c, extent: "cdiv(columns, block)", bind: block.x}
  - {axis: c, extent: block, bind: thread.x}
  - {axis: r, extent: rows // parts}
registers: [partial]
compute:
  - partial[p, c] += x[p, r, c]
launches: steps
then:
  - launches: steps if parts > 1 else 0
    loops:
      - {axis: c, extent: "cdiv(columns, finish)", bind: block.x}
      - {axis: c, extent: finish, bind: thread.x}
      - {axis: p, extent: parts}
    registers: [y]
    compute:
      - y[c] += partial[p, c]
"""
L4 = load_device("l4")


@pytest.fixture
def sums(tmp_path: Path) -> Description:
    (tmp_path / "sums.yaml").write_text(SUMS)
    return read_description(tmp_path / "sums.yaml")


def test_launches_add_up(sums: Description) -> None:
    found = Candidates(sums, L4, [{"parts": 32}, {"parts": 1}])
    assert found.plan.valid.all()
    assert found.physics["flops"].tolist() == [4096 * 1024 + 32 * 1024, 4096 * 1024]
    x, partial, y = 4 * 4096 * 1024, 4 * 32 * 1024, 4 * 1024
    assert found.physics["distinct_bytes"].tolist() == [x + partial + partial + y, x + y]
    first, second = found.launches
    assert first["blocks"].tolist() == [32 * 8, 8] and second["blocks"].tolist() == [16, 16]
    assert second["t_dram"][0] > 0 == second["t_dram"][1]  # not launched


def test_steps_of_the_host_repeat_both(sums: Description) -> None:
    once, often = (Candidates(sums, L4, [{"parts": 32, "steps": steps}]) for steps in (1, 50))
    for name in ("flops", "distinct_bytes", "roofline_s"):
        assert often.physics[name][0] == pytest.approx(50 * once.physics[name][0])
    small = Candidates(sums, L4, [{"parts": 32, "steps": 50, "rows": 32, "columns": 64}])
    assert small.physics["estimate_s"][0] >= 100 * LAUNCH_GAP_S
    alone = Candidates(sums, L4, [{"parts": 1, "rows": 32, "columns": 64}])
    assert alone.physics["estimate_s"][0] < LAUNCH_GAP_S


def test_what_is_not_launched_makes_no_difference(sums: Description) -> None:
    keys = [{"parts": parts, "finish": finish} for parts in (1, 32) for finish in (64, 128)]
    assert Candidates(sums, L4, keys).programs.tolist() == [0, 0, 1, 2]


def test_a_launch_that_does_not_fit_spoils_all(sums: Description) -> None:
    found = Candidates(sums, L4, [{"parts": parts, "finish": 2048} for parts in (1, 32)])
    assert found.physics["fits"].tolist() == [1, 0]


def test_launches_follow_one_another(sums: Description) -> None:
    nest = scheduled_nest(plan(sums, [{"parts": 32, "steps": 3}]))
    assert [node.iterator for node in nest.body if isinstance(node, Loop)] == ["launch0", "launch1"]
    iterators = [node.iterator for node in walk(nest.body) if isinstance(node, Loop)]
    assert len(iterators) == len(set(iterators)) == 2 + 4 + 3
    written = [node.target.buffer for node in walk(nest.body) if isinstance(node, Statement)]
    assert written == ["partial_registers", "partial", "y_registers_1", "y"]
    assert {"x", "partial", "y", "partial_registers", "y_registers_1"} == set(nest.buffers)


def test_the_graph_has_all_launches(sums: Description) -> None:
    one, two = (scheduled_graph(sums, {"parts": parts}) for parts in (1, 32))
    assert one.values["total_flops"] == 4096 * 1024
    assert two.values["total_flops"] == 4096 * 1024 + 32 * 1024
    again = scheduled_graph(sums, {"parts": 32, "steps": 10})
    assert again.values["total_flops"] == 10 * two.values["total_flops"]


def test_networks_learn_the_sum_of_launches(sums: Description) -> None:
    """Of two passes that take like long, each is half: what is learned of both holds where one is missing."""
    keys = [
        {"parts": p, "block": b, "finish": f}
        for p in (1, 2, 8, 32, 128)
        for b in (64, 128)
        for f in (64, 128)
    ]
    known = Candidates(sums, L4, keys)
    runtime = 2e3 * known.physics["estimate_s"]
    table = GpuTable(sums, L4, keys, "sums", "l4", runtime)
    demand = fit_demand([table], own=True, settings=DemandFitSettings(steps=200))
    error = np.abs(mean_prediction([demand], known) - np.log2(runtime))
    assert error.mean() < 0.2
    single = GpuTable(replace(sums, name="pass", then=()), L4, keys, "pass", "l4", runtime)
    both = fit_demand([table, single], own=False, settings=DemandFitSettings(steps=5))
    assert np.isfinite(mean_prediction([both], Candidates(single.description, L4, keys))).all()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("then:\n", "then: 1\nnext:\n", "unknown field 'next'"),
        ("    registers: [y]", "    sizes: {z: 1}", r"then\[0\]: unknown field 'sizes'"),
        ("finish, bind: thread.x", "finish, bind: block.y", r"then\[0\].loops: expected at least one with"),
        ("y[c] += partial[p, c]", "y[c] += partial[r, c]", r"then\[0\].compute\[0\]"),
        ("steps if parts > 1 else 0", "many", r"then\[0\].launches: 'many' is neither"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_place(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in SUMS
    (tmp_path / "sums.yaml").write_text(SUMS.replace(old, new))
    with pytest.raises(InputError, match=message):
        read_description(tmp_path / "sums.yaml")
