"""Descriptions: what they say of a schedule, and what is said of bad ones."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from gnnperf.devices import load_device
from gnnperf.errors import InputError
from gnnperf.frontends.gpu_kernels import (
    Expression,
    configurations_of,
    find_description,
    list_descriptions,
    physical_features,
    plan,
    read_description,
    scheduled_graph,
)
from gnnperf.frontends.gpu_kernels.description import KERNELS
from gnnperf.graph import ProgramGraph

GEMM = {
    "MWG": 64,
    "NWG": 128,
    "KWG": 32,
    "MDIMC": 16,
    "NDIMC": 8,
    "MDIMA": 16,
    "NDIMB": 16,
    "VWM": 4,
    "VWN": 2,
}


def values(**given: int) -> dict[str, np.ndarray]:
    return {name: np.array([value]) for name, value in given.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cdiv(a, 4) * 2", 6),
        ("a if b == 3 else 0", 10),
        ("not a or b in_", None),
        ("1 < b < a", 1),
        ("min(a, b)", 3),
    ],
)
def test_expressions_are_integer_arithmetic(text: str, expected: int | None) -> None:
    if expected is None:
        with pytest.raises(InputError, match="expected an expression"):
            Expression.parse(text, "here")
    else:
        assert Expression.parse(text, "here")(values(a=10, b=3), "here").tolist() == [expected]


@pytest.mark.parametrize("text", ["__import__('os')", "a.real", "[a]", "a / 2", "1.5", "lambda: 1"])
def test_expressions_are_nothing_else(text: str) -> None:
    with pytest.raises(InputError, match=r"^here: expected"):
        Expression.parse(text, "here")


@pytest.mark.parametrize("text", ["a // b", "2 ** 64"])
def test_what_has_no_value_is_told(text: str) -> None:
    with pytest.raises(InputError, match=f"'{re.escape(text)}' divides by zero or overflows"):
        Expression.parse(text, "here")(values(a=1, b=0), "here")


def test_loops_of_gemm_cover_every_element_once() -> None:
    planned = plan(find_description("gemm"), [GEMM])
    for axis, size in (("m", 4096), ("n", 4096), ("k", 4096)):
        seen = np.zeros(1, dtype=np.int64)
        for loop in planned.loops:
            if loop.about.axis == axis:
                seen = (seen[:, None] + loop.step[0] * np.arange(loop.extent[0])[None, :]).ravel()
        assert sorted(seen) == list(range(size))
    assert planned.iterations(planned.level("block"))[0] == 4096 // 64 * (4096 // 128)
    assert planned.iterations(planned.level("thread"))[0] == 16 * 8


def test_tiles_in_shared_memory_have_their_halo() -> None:
    planned = plan(
        find_description("convolution2d"), [{"block_size_x": 32, "block_size_y": 4, "tile_size_x": 2}]
    )
    (stage,) = planned.stages
    assert [int(side[0]) for side in stage.tile] == [4 * 2 + 14, 32 * 2 + 14]


@pytest.mark.parametrize("kernel", list_descriptions())
def test_every_kernel_becomes_a_scheduled_graph(kernel: str) -> None:
    description = find_description(kernel)
    graph = scheduled_graph(description, {})
    annotations = [node.features.get("annotation") for node in graph.nodes if node.kind == "loop"]
    assert {"block", "thread"} <= set(annotations)
    bindings = {n.features.get("binding") for n in graph.nodes if n.features.get("annotation") == "thread"}
    assert "x" in bindings
    assert ProgramGraph.from_json(graph.to_json()).digest == graph.digest
    staged = any(stage.active[0] for stage in plan(description, [{}]).stages)
    scopes = {node.features.get("scope") for node in graph.nodes if node.kind == "buffer"}
    assert ("shared" in scopes) == staged


def test_work_does_not_depend_on_the_schedule() -> None:
    description = find_description("gemm")
    one, other = (
        scheduled_graph(description, {**GEMM, **change}) for change in ({}, {"SA": 0, "SB": 0, "STRM": 1})
    )
    assert one.values["total_flops"] == other.values["total_flops"] == 2 * 4096**3
    assert one.digest != other.digest
    assert scheduled_graph(description, dict(reversed(GEMM.items()))).digest == one.digest


def test_sizes_may_be_given() -> None:
    small = scheduled_graph(find_description("gemm"), GEMM, {"M": 512, "N": 512, "K": 64})
    assert small.values["total_flops"] == 2 * 512 * 512 * 64


def test_the_search_space_is_what_the_constraints_allow() -> None:
    description = find_description("pnpoly")
    assert len(list(configurations_of(description))) == 31 * 11 * 4 * 3
    assert {c["MWG"] for c in configurations_of(find_description("gemm"), {"M": 32})} == {16, 32}


def test_constraints_that_leave_nothing_are_told(tmp_path: Path) -> None:
    values = {**yaml.safe_load((KERNELS / "pnpoly.yaml").read_text()), "constraints": ["block_size_x < 0"]}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(values))
    with pytest.raises(InputError, match="pnpoly: constraints: no configuration is left"):
        configurations_of(read_description(tmp_path / "mine.yaml"))


def test_of_too_many_configurations_it_is_told_how_many_were_tried(tmp_path: Path) -> None:
    values = yaml.safe_load((KERNELS / "pnpoly.yaml").read_text())
    values["parameters"] |= {f"choice{i}": list(range(10)) for i in range(9)}
    values["constraints"] = [" and ".join(f"choice{i} == 7" for i in range(9))]
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(values))
    with pytest.raises(InputError, match=r"none of 200,000 .* out of 4,092,000,000,000 is left"):
        configurations_of(read_description(tmp_path / "mine.yaml"))


def test_what_a_constraint_rules_out_need_not_make_sense(tmp_path: Path) -> None:
    values = yaml.safe_load((KERNELS / "pnpoly.yaml").read_text())
    values["parameters"]["tile_size"] = [0, 1, 2]
    values["constraints"] = ["tile_size >= 1", "block_size_x % tile_size == 0"]
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(values))
    found = configurations_of(read_description(tmp_path / "mine.yaml"))
    assert {c["tile_size"] for c in found} == {1, 2}


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        ({"MWG": 64, "TILE": 3}, "unknown parameter 'TILE'; known: MWG"),
        ({"MWG": 6.5}, "integers of at least 0, got 6.5"),
        ({"MWG": 16, "MDIMC": 32}, "expected a configuration in which MWG % "),
        ({"MWG": 64, "M": 16}, "expected a configuration in which M // MWG is at least 1"),
        ({"MDIMC": 0}, "divides by zero"),
    ],
)
def test_bad_configurations_are_told(configuration: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        scheduled_graph(find_description("gemm"), configuration)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loops": []}, "loops: expected at least one entry"),
        (
            {"stage": [], "loops": [{"axis": a, "extent": "4"} for a in "mnk"]},
            "expected at least one with bind: thread.x",
        ),
        ({"loops": [{"axis": "m", "extent": "M", "bind": "warp"}]}, "bind: expected one of block.x"),
        ({"loops": [{"axis": "m", "extent": "Q"}]}, "'Q' is neither a parameter nor a size"),
        ({"loops": [{"axis": "m", "extent": "min"}]}, "'min' is neither a parameter nor a size"),
        ({"parameters": {"cdiv": [1, 2]}}, "'cdiv' is a function; choose another name"),
        ({"parameters": {"MWG": [1, 1]}}, "parameters.MWG: expected different integers"),
        ({"compute": ["C[n] = A[k, m]"]}, "expected 2 subscripts of C"),
        ({"compute": ["C[n, m] = open('x')"]}, "compute.0.: expected axes"),
        ({"compute": ["C[n, m] = " + "-" * 900 + "1"]}, "expected a statement"),
        ({"compute": ["(" * 150]}, "expected a statement"),
        ({"constraints": ["cdiv(M)"]}, "cdiv, min and max, got 'cdiv"),
        ({"buffers": {"A": {"dtype": "float3", "shape": []}}}, "expected a dtype"),
        ({"stage": [{"buffer": "Z", "threads": [1]}]}, "stage.0..buffer: expected one of A, B, C, got 'Z'"),
        ({"stage": [{"buffer": "C", "threads": [1]}]}, "stage: expected buffers that are read, got C"),
        ({"stage": [{"buffer": "A", "threads": []}]}, "stage.0..threads: expected at least one entry"),
        (
            {"stage": [], "loops": [{"axis": "m", "extent": e, "bind": "thread.x"} for e in "48"]},
            "expected one over m with bind: thread.x, got several",
        ),
        ({"colour": 1}, "unknown field 'colour'"),
    ],
)
def test_bad_descriptions_are_told(tmp_path: Path, change: dict[str, object], message: str) -> None:
    values = {**yaml.safe_load((KERNELS / "gemm.yaml").read_text()), **change}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(values))
    with pytest.raises(InputError, match=message):
        read_description(tmp_path / "mine.yaml")


def test_stages_are_copied_by_threads_for_statements_that_read_them(tmp_path: Path) -> None:
    stage = {"buffer": "A", "inside": "k0", "threads": ["MDIMA", "STRN"]}
    product, constant = {"do": "C[n, m] += A[k, m] * B[k, n]", "when": "STRM"}, "C[n, m] = 1"
    values = yaml.safe_load((KERNELS / "gemm.yaml").read_text())
    (tmp_path / "mine.yaml").write_text(
        yaml.safe_dump({**values, "stage": [stage], "compute": [product, constant]})
    )
    description = read_description(tmp_path / "mine.yaml")
    with pytest.raises(InputError, match="expected a configuration in which STRN is at least 1"):
        scheduled_graph(description, {**GEMM, "STRN": 0})
    (features,) = physical_features(plan(description, [{**GEMM, "STRN": 0}]), load_device("l4"))
    assert all(np.isfinite(values).all() for values in features.values())
    for reads in (0, 1):
        graph = scheduled_graph(description, {**GEMM, "STRN": 1, "STRM": reads})
        assert ("shared" in {n.features.get("scope") for n in graph.nodes if n.kind == "buffer"}) == reads


def test_a_kernel_that_nobody_described_is_told() -> None:
    with pytest.raises(
        InputError, match="expected one of convolution2d, expdist, gemm, hotspot, pnpoly, or a YAML"
    ):
        find_description("fft")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 900,
        "-" * 900 + "1",
        "1 if " * 60 + "1",
        "+".join("1" * 600),
        "9" * 30,
        "__import__('os')",
        "1\0",
    ],
)
def test_expressions_that_only_exhaust_the_reader_are_told(text: str) -> None:
    with pytest.raises(InputError, match="here: expected "):
        Expression.parse(text, "here")


@pytest.mark.parametrize("text", ["9**9**9**9", "n**64", "(n**9)**9", "9 ** 40 + n"])
def test_numbers_that_are_too_large_are_told(text: str) -> None:
    with pytest.raises(InputError, match="divides by zero or overflows"):
        Expression.parse(text, "here")({"n": np.array([1, 3, 2**40])}, "here")


@pytest.mark.parametrize("text", ["n * n > 0", "n * 2**22 + 2**62", "-(2**62) - n * 2**22 - 1"])
def test_arrays_of_numbers_do_not_wrap(text: str) -> None:
    whole = Expression.parse(text, "here")
    with pytest.raises(InputError, match="divides by zero or overflows"):
        whole({"n": np.array([1, 3, 2**40])}, "here")
    assert whole({"n": np.array([1, 3, 2**20])}, "here").tolist() == [
        eval(text, {"n": n}) for n in (1, 3, 2**20)
    ]


def test_a_branch_that_is_not_taken_is_not_evaluated() -> None:
    values = {"n": np.array([0, 2, 4]), "m": np.array([8, 8, 8])}
    for text, found in {
        "m // n if n else 1": [1, 4, 2],
        "1 if n == 0 else 2 if m % n == 0 and m // n > 2 else 3": [1, 2, 3],
        "n > 0 and m // n == 2": [0, 0, 1],
        "n == 0 or m // n == 4": [1, 1, 0],
        "not n": [1, 0, 0],
        "0 < n <= 2": [0, 1, 0],
        "(n > 1) + (m > 1)": [1, 2, 2],
        "-(n > 1) - (not n) + (n and m)": [-1, 0, 0],
        "max(cdiv(m, 3), n) - 2 ** n": [2, -1, -12],
    }.items():
        assert Expression.parse(text, "here")(values, "here").tolist() == found, text
    with pytest.raises(InputError, match="divides by zero"):
        Expression.parse("m // n", "here")(values, "here")
