"""Corpora of loop nests as networks learn from them."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.synthetic import measurement, nest, nest_like, write_corpus

from gnnperf.errors import InputError
from gnnperf.nests import nest_graph
from gnnperf.training import load_corpora, load_corpus

RELEASED = Path(__file__).parents[2] / "checkpoints/corpus"


def world(folder: Path, *tried: str, device: str | None = None) -> Path:
    graph = nest_like([64, 32])
    machine = {"device": {"fingerprint": device, "name": "test"}} if device else {}
    lines = [measurement(graph.digest, s, 0.5, **({"device": device} if device else {})) for s in tried]
    return write_corpus(folder, [nest(graph, "map", **machine)], lines)


def test_several_corpora_are_one(tmp_path: Path) -> None:
    first, second = world(tmp_path / "first", "a", "b"), world(tmp_path / "second", "b", "c")
    other = nest_like([128])
    third = write_corpus(tmp_path / "third", [nest(other, "row")], [measurement(other.digest, "a", 0.2)])
    joined = load_corpora([first, second, third])
    assert [n.family for n in joined.nests] == ["map", "row"]
    assert sorted(joined.measurements[joined.nests[0].digest]) == ["a", "b", "c"]
    assert joined.measurement_count == 4
    assert len({joined.digest, load_corpora([first, third]).digest, load_corpus(first).digest}) == 3


def test_corpora_of_unlike_devices_are_refused(tmp_path: Path) -> None:
    one, other = world(tmp_path / "one", "a"), world(tmp_path / "other", "a", device="cpu/aarch64/sve")
    with pytest.raises(InputError, match="expected corpora of one device, got cpu/aarch64/sve and cpu/x86"):
        load_corpora([one, other])
    with pytest.raises(InputError, match="got none"):
        load_corpora([])


def test_a_damaged_nest_is_refused(tmp_path: Path) -> None:
    graph = nest_like([64])
    lines = [nest(graph, "map", nest={"name": "map", "buffers": [], "body": [{"kind": "loop"}]})]
    folder = write_corpus(tmp_path / "corpus", lines, [measurement(graph.digest, "a", 0.5)])
    with pytest.raises(InputError, match=r"tasks\.jsonl line 1: not a task of this version"):
        load_corpus(folder)


@pytest.mark.parametrize(
    "name",
    "chains composed discrete first flows in_place lanes random random_avx2 random_search random_xeon small "
    "steps windows".split(),
)
def test_released_nests_are_those_that_were_measured(name: str) -> None:
    held = [n for n in load_corpus(RELEASED / name).nests if n.nest is not None]
    assert len(held) >= 10
    for n in held[:: max(1, len(held) // 10)]:
        assert n.nest is not None and nest_graph(n.nest, n.trip_counts).digest == n.digest
