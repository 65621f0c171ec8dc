"""Traces of strangers: what gnnperf and MetaSchedule make is read, and nothing that carries code."""

from __future__ import annotations

import json
from typing import Any

import pytest
import zstandard

from gnnperf.errors import InputError, NotApplicable
from gnnperf.frontends.tvm import TvmTask, apply_recipe
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.spaces import DesignSpace
from gnnperf.frontends.tvm.target import host_target
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.schedules.recipes import DEFAULTS
from gnnperf.schedules.traces import TraceDocument, trace_document
from gnnperf.schedules.traces.allowed import ANNOTATIONS, check_trace
from gnnperf.schedules.traces.document import plain
from gnnperf.shipped import shipped

import_tvm()

WORKLOADS = [
    TvmWorkload("matmul", {"m": 64, "n": 64, "k": 64, "layout": "nt"}),
    TvmWorkload("conv2d", {"h": 14, "w": 14, "ci": 8, "co": 16, "kernel": 3, "padding": 1}),
    TvmWorkload("softmax", {"m": 64, "n": 128}),
    TvmWorkload("elementwise", {"m": 64, "n": 128, "chain": "bias_gelu"}),
    TvmWorkload("matmul_int8", {"m": 128, "n": 128, "k": 128}),
]


def document(*extra: list[Any], decisions: list[Any] | None = None, **changes: Any) -> str:
    """A trace that tiles a loop, and more instructions."""
    tiled = [
        ["GetSBlock", [], ["C", "main"], ["b0"]],
        ["GetLoops", ["b0"], [], ["l1", "l2", "l3"]],
        ["SamplePerfectTile", ["l1"], [2, 64], ["v4", "v5"]],
        ["Split", ["l1", "v4", "v5"], [True, False], ["l6", "l7"]],
        *extra,
    ]
    fields = {"blocks": {"C": "anchor"}, "cores": 2, "loops": "SSR"}
    return json.dumps(
        {**fields, "trace": [tiled, [[2, [4, 16]]] if decisions is None else decisions], **changes}
    )


def annotate(key: str, value: Any) -> list[Any]:
    return ["Annotate", ["l6", value], [key], []]


def test_released_traces_and_those_of_the_corpus_are_allowed() -> None:
    """Of the store: see the tests of stores. Here with what post-processing did."""
    kinds, annotated = set(), set()
    path = shipped("checkpoints/corpus/tensor") / "records.jsonl.zst"
    with zstandard.open(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file):
            if number % 5:
                continue
            instructions, decisions = json.loads(line)["schedule"]["trace"]
            check_trace(instructions, {int(k): v for k, v in decisions})
            kinds |= {i[0] for i in instructions}
            annotated |= {i[2][0] for i in instructions if i[0] == "Annotate"}
    assert {"Tensorize", "RFactor", "EnterPostproc", "Blockize"} <= kinds
    assert {"pragma_auto_unroll_max_step", "meta_schedule.auto_tensorize"} <= annotated <= set(ANNOTATIONS)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.kind)
def test_what_rules_and_recipes_make_is_allowed(workload: TvmWorkload) -> None:
    module, target = workload.build(), host_target()
    space = DesignSpace(module, target)
    for candidate in space.sample(6, seed=3):
        found = trace_document(candidate.sch, module, target)
        assert TraceDocument.from_json(found.to_json()) is not None
        space.replay(plain(candidate.sch.trace.as_json()))
    expressed = 0
    for recipe in DEFAULTS:
        try:
            schedule = apply_recipe(TvmTask("task", module), recipe)
        except NotApplicable:
            continue
        expressed += 1
        TraceDocument.from_json(trace_document(schedule, module, target).to_json())
    assert expressed


@pytest.mark.parametrize(
    "text",
    [
        document(annotate("pragma_import_llvm", '"define void @f() { ret void }"')),
        document(annotate("pragma_import_c", '"void f() {}"')),
        document(annotate("pragma_unroll_explicit", '"define void @f() { ret void }"')),
        document(annotate("pragma_debug_skip_region", 1)),
        document(annotate("meta_schedule.parallel", '"8"')),
        document(annotate("meta_schedule.parallel", {"a": 1})),
        document(annotate("meta_schedule.unroll_explicit", 10**9)),
        document(annotate("meta_schedule.tiling_structure", '"SSRSRS; code"')),
        document(annotate("meta_schedule.auto_tensorize", '"of_a_stranger"')),
        document(annotate("meta_schedule.auto_tensorize", ["dot_16x4_vnni"])),
        document(annotate("meta_schedule.of_a_stranger", 1)),
        document(annotate("call_extern", '"system"')),
        document(["Annotate", ["l6", 1], [["meta_schedule.parallel"]], []]),
        document(["Annotate", ["l6", 1], ["meta_schedule.parallel", "more"], []]),
        document(["Annotate", ["l6"], ["meta_schedule.parallel"], []]),
        document(["Unannotate", ["l6"], ["of_a_stranger"], []]),
        document(["Tensorize", ["l6"], ["of_a_stranger", True], []]),
        document(["TransformLayout", ["b0"], [0, 0, "{}", True], []]),
        document(["TransformBlockLayout", ["b0"], ["{}"], []]),
        document(["SetScope", ["b0"], [0, "global.of_a_stranger"], []]),
        document(["CacheRead", ["b0", []], [0, "shared"], ["b9"]]),
        document(["Bind", ["l6"], ["threadIdx.x"], []]),
        document(["UnsafeHideBufferAccess", ["b0"], ["read", [0]], []]),
        document(["GetSBlock", [], ["C\n", "main"], ["b9"]]),
        document(["GetLoops", ["b0; code"], [], ["l9"]]),
        document(["GetLoops", ["b0"], [], ['"text"']]),
        document(["GetLoops", ["b0"], [], [1]]),
        document(["Fuse", ["l2", "l3"], [True]]),
        document(["Fuse", "l2", [True], ["l9"]]),
        document(["Split", ["l2", 10**12], [True, False], ["l8", "l9"]]),
        document([["Fuse"], ["l2"], [True], ["l9"]]),
        document(*[["GetLoops", ["b0"], [], []]] * 5000),
        document(
            ["SamplePerfectTile", ["l2"], [9, 64], [f"t{n}" for n in range(9)]],
            decisions=[[2, [4, 16]], [4, [2] * 9]],
        ),
        document(decisions=[]),
        document(decisions=[[2, [4]]]),
        document(decisions=[[2, [0, 0]]]),
        document(decisions=[[2, "4, 16"]]),
        document(decisions=[[2, [4, 16]], [0, 1]]),
        document(decisions=[[2, [4, 16]], [-1, 1]]),
        document(decisions=[[2, [4, 16]], [10**30, 1]]),
        document(["SampleCategorical", [], [[0, 16], [0.5, 0.5]], ["v9"]], decisions=[[2, [4, 16]], [4, 2]]),
        document(["SampleCategorical", [], [[10**9], [1.0]], ["v9"]], decisions=[[2, [4, 16]], [4, 0]]),
        document(["SampleComputeLocation", ["b0"], [], ["l9"]]),
        document(blocks={}),
        document(blocks={"C": "root"}),
        document(blocks={"C": "anchor", "D": "a <script>"}),
        document(blocks=["C"]),
        document(loops="SSR;"),
        document(loops=7),
        document(cores=-1),
        document(cores="2"),
        document(trace=7),
        document(trace=[[7], []]),
        "[" * 100_000,
        "1" * 5000,
        "",
    ],
)  # fmt: skip
def test_what_could_be_anything_is_refused_in_a_line(text: str) -> None:
    with pytest.raises(InputError) as error:
        TraceDocument.from_json(text)
    assert len(str(error.value)) < 300
    assert str(error.value).isprintable()


def test_the_trace_that_these_are_made_from_is_allowed() -> None:
    good = document(annotate("pragma_auto_unroll_max_step", 64), annotate("meta_schedule.parallel", 32))
    assert TraceDocument.from_json(good).describe()


def test_a_recorded_trace_of_a_corpus_is_checked_before_it_is_replayed() -> None:
    space = DesignSpace(WORKLOADS[0].build(), host_target())
    trace = json.loads(document(annotate("pragma_import_llvm", '"define void @f() { ret void }"')))["trace"]
    with pytest.raises(InputError, match="pragma_import_llvm"):
        space.replay(trace)
