"""Where the pictures of a page put what they show, worked by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from report.made_up import CPU, graph

from gnnperf.devices import load_device
from gnnperf.report.axis import LogAxis
from gnnperf.report.nest_picture import MOST_ROWS, draw_nest
from gnnperf.report.roofline import LABEL, Roofline, Run, roof_of
from gnnperf.report.spans import SpanAxis
from gnnperf.report.words import times_label


def test_equal_ratios_are_equally_far_apart() -> None:
    axis = LogAxis(1.0, 100.0, 0.0, 200.0)
    assert [axis.at(v) for v in (1, 10, 100)] == pytest.approx([0, 100, 200])
    assert [axis.at(v) for v in (0.01, 1e6)] == pytest.approx([0, 200]), "beyond the ends, at the end"
    assert [value for value, _ in axis.ticks()] == [1, 3, 10, 30, 100]


def test_an_axis_has_room_for_its_values() -> None:
    axis = LogAxis.covering([2.0, 8.0, 0.0, math.inf], 0.0, 100.0)
    assert 0 < axis.at(2.0) < axis.at(8.0) < 100
    one = LogAxis.covering([5.0], 0.0, 100.0)
    assert one.at(5.0) == pytest.approx(50.0)
    assert one.high / one.low > 2


def test_ticks_are_few_however_long_the_axis() -> None:
    assert 2 <= len(LogAxis(1e-9, 1e9, 0.0, 1.0).ticks()) <= 6
    assert 2 <= len(LogAxis(1.0, 1.9, 0.0, 1.0).ticks()) <= 6


def test_the_roof_of_a_device() -> None:
    single, double = roof_of(CPU), roof_of(CPU, "float64")
    assert single is not None and double is not None
    assert (single.flops_per_s, double.flops_per_s, single.bytes_per_s) == (1e12, 5e11, 5e10)
    assert single.ridge == 20.0
    assert roof_of(replace(CPU, bandwidth_gbps=None)) is None
    assert roof_of(None) is None
    matrix = roof_of(replace(CPU, peak_gflops_fp32_matrix=4000.0), matrix=True)
    assert matrix is not None and matrix.flops_per_s == 4e12


@pytest.mark.parametrize(
    ("dtype", "matrix", "tflops"),
    [
        ("fp16", True, 121.0), ("fp16", False, 30.29), ("float16", False, 30.29), ("fp64", True, 0.473),
        ("float64", False, 0.473), ("", False, 30.29), ("int8", True, 242.5), ("int8", False, None),
        ("int32", False, None), ("uint8", True, None),
    ],
)  # fmt: skip
def test_the_roof_is_that_of_the_dtype(dtype: str, matrix: bool, tflops: float | None) -> None:
    """Integers without a peak have none: that of floats may be lower."""
    roof = roof_of(load_device("l4"), dtype, matrix)
    assert (None if roof is None else roof.flops_per_s) == (tflops and pytest.approx(tflops * 1e12))


def test_positions_on_the_roofline() -> None:
    roof = roof_of(CPU)
    assert roof is not None
    # 1 GFLOP and 1 GB: limited by memory, 20 ms at the least.
    line = Roofline(
        roof, 1e9, 1e9, (Run("baseline", 0.2, "before"), Run("kept", 0.025), Run("x", 0.1, "tried"))
    )
    assert (line.intensity, line.limit) == (1.0, "memory")
    assert [(p.label, p.share) for p in line.positions] == [
        ("baseline", pytest.approx(0.1)), ("kept", pytest.approx(0.8)),
    ]  # fmt: skip
    assert line.positions[0].flops_per_s == pytest.approx(5e9)
    picture = line.picture
    assert picture is not None
    before, after, tried = picture.marks
    assert before.y > tried.y > after.y, "the faster, the higher"
    assert before.x == after.x == tried.x
    assert tried.label_at is None
    (_, sloping), (ridge, flat), (_, end) = picture.roof
    assert sloping > flat == end
    assert before.x < ridge


def test_labels_of_like_runs_are_apart() -> None:
    roof = roof_of(CPU)
    assert roof is not None
    picture = Roofline(roof, 1e9, 1e9, (Run("baseline", 0.2, "before"), Run("kept", 0.199))).picture
    assert picture is not None
    places = [mark.label_at for mark in picture.marks]
    assert places[0] is not None and places[1] is not None
    assert abs(places[0][1] - places[1][1]) >= LABEL


def test_without_arithmetic_there_is_no_place_on_the_roofline() -> None:
    roof = roof_of(CPU)
    assert roof is not None
    line = Roofline(roof, 0.0, 1e9, (Run("baseline", 0.04, "before"),))
    assert line.picture is None
    assert line.positions[0].share == pytest.approx(0.5)


def test_spans_share_their_axis() -> None:
    axis = SpanAxis.covering([0.5, 8.0], times_label, reference=1.0)
    assert axis.reference is not None
    slower, faster = axis.span((0.5, 0.6), 0.55), axis.span((6.0, 8.0), 7.0)
    assert slower.bars[0][1] < axis.reference < faster.bars[0][0]
    assert faster.middle is not None and faster.bars[0][0] < faster.middle < faster.bars[0][1]
    assert "1×" in [label for label, _ in axis.ticks]


def test_intervals_inside_one_another_are_drawn_widest_first() -> None:
    axis = SpanAxis.covering([1.0, 4.0], times_label)
    cell = axis.levels({"50%": (1.8, 2.2), "95%": (1.0, 4.0), "80%": (1.5, 3.0)}, 2.0, 1.2)
    assert [style for *_, style in cell.bars] == ["level95", "level80", "level50"]
    assert cell.tick is not None and cell.middle is not None and cell.tick < cell.middle


def test_the_picture_of_a_nest() -> None:
    drawn = draw_nest(graph("gemm"))
    assert [t.text for t in drawn.texts if t.style == "iterator"] == ["i", "k", "j"]
    assert [t.text for t in drawn.texts if t.style == "statement"] == ["C[i, j] += A[i, k] * B[k, j]"]
    assert [bar.kind for bar in drawn.bars] == ["spatial", "reduction", "spatial"]
    first = {symbol.y for symbol in drawn.symbols}
    assert len(drawn.symbols) == 9, "three accesses, each beside three loops"
    assert len(first) == 3
    assert all(t.y <= drawn.height for t in drawn.texts)
    assert all(bar.top < bar.bottom <= drawn.height for bar in drawn.bars)


def test_a_long_nest_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnnperf.report.nest_picture.MOST_ROWS", 4)
    assert MOST_ROWS > 4
    drawn = draw_nest(graph("softmax"))
    assert drawn.texts[-1].text.endswith("more rows")
