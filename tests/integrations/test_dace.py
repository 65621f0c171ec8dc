"""The DaCe pass and the decorator: they tune, stay right, remember, and fall back on any trouble."""

# No `from __future__ import annotations`: DaCe would not see the types of arguments.

import logging
from collections.abc import Iterator
from pathlib import Path

import dace
import numpy as np
import pytest
from report.made_up import retrieval

import gnnperf
from gnnperf.backends.folder import same_float_mode
from gnnperf.errors import InputError, MeasureError
from gnnperf.integrations.dace import TransferTune, TunedProgram
from gnnperf.session import Retrieval, Session

N, M = dace.symbol("N"), dace.symbol("M")


@pytest.fixture(autouse=True)
def _float_mode() -> Iterator[None]:
    """DaCe's own libraries change it."""
    with same_float_mode():
        yield


@dace.program
def row_sums(a: dace.float32[N, M], b: dace.float32[M], out: dace.float32[N]):
    out[:] = np.add.reduce(a * b, axis=1)


@dace.program
def product(a: dace.float32[N, N], b: dace.float32[N, N]):
    return a @ b


def arguments(n: int = 600, m: int = 900) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    made = {"a": rng.random((n, m)), "b": rng.random(m), "out": np.zeros(n)}
    return {name: value.astype(np.float32) for name, value in made.items()}


def check(given: dict[str, np.ndarray]) -> None:
    wanted = given["a"].astype(np.float64) @ given["b"]
    np.testing.assert_allclose(given["out"], wanted, rtol=1e-4)


def test_the_pass_tunes_in_place_within_a_pipeline() -> None:
    sdfg, given = row_sums.to_sdfg(), arguments()
    tune = TransferTune(k=1, symbols={"N": 600, "M": 900}, remember=False)
    results = dace.transformation.pass_pipeline.Pipeline([tune]).apply_pass(sdfg, {})
    report = results["TransferTune"]
    assert report.verified and report.speedup > 1 and "x over dace-auto" in tune.report(report)
    sdfg.validate()
    assert sdfg.name.endswith("row_sums") and not sdfg.free_symbols
    sdfg(**given)
    check(given)


def test_the_pass_leaves_a_program_alone_where_nothing_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "retrieve", lambda *_, **__: retrieval(kept_baseline=True))
    sdfg = row_sums.to_sdfg()
    before = sdfg.hash_sdfg()
    assert TransferTune(symbols={"N": 8, "M": 8}).apply_pass(sdfg, {}) is None
    assert sdfg.hash_sdfg() == before


def test_the_pass_says_that_the_whole_could_not_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    made = retrieval(kept_baseline=True, failed=True, note="the whole took too long; nothing is kept")
    found = Retrieval(**vars(made))
    monkeypatch.setattr(Session, "retrieve", lambda *_, **__: found)
    for work in (
        lambda: TransferTune(symbols={"N": 8}).apply_pass(blend.to_sdfg(), {}),
        lambda: found.save("nowhere"),
    ):
        with pytest.raises(MeasureError, match="the whole took too long; nothing is kept"):
            work()


def test_the_pass_asks_for_sizes() -> None:
    with pytest.raises(InputError, match="no value for the symbol N; give symbols="):
        TransferTune(symbols={"M": 8}).apply_pass(row_sums.to_sdfg(), {})
    with pytest.raises(InputError, match="k of at least 1, got 0"):
        TransferTune(k=0)


def test_a_tuned_program_is_right_remembered_and_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = gnnperf.tuned(k=1, remember=False, cache=tmp_path)(product)
    one = np.eye(160, dtype=np.float32)
    other = np.arange(160 * 160, dtype=np.float32).reshape(160, 160)
    np.testing.assert_allclose(program(other, one), other)
    (folder,) = tmp_path.iterdir()
    assert (folder / "libkernel.so").is_file()
    # What somebody left without its report is made anew.
    (folder / "report.json").unlink()
    gnnperf.tuned(k=1, remember=False, cache=tmp_path)(product)(other, one)
    assert (folder / "report.json").is_file()
    # A new process finds it: nothing is tuned again.
    monkeypatch.setattr(Session, "retrieve", lambda *_, **__: pytest.fail("tuned again"))
    again = gnnperf.tuned(k=1, remember=False, cache=tmp_path)(product)
    np.testing.assert_allclose(again(b=one, a=2 * other), 2 * other)
    assert isinstance(again, TunedProgram) and again.__name__ == "product"


@dace.program
def blend(a: dace.float64[N], b: dace.float64[N]):
    b[:] = 2.0 * a + b


def test_one_array_for_two_arguments_is_tuned_for_itself(tmp_path: Path) -> None:
    program = gnnperf.tuned(k=1, remember=False, cache=tmp_path)(blend)
    one, two = np.linspace(0.0, 1.0, 300), np.ones(300)
    start = one.copy()
    program(one, two)
    np.testing.assert_allclose(two, 2 * start + 1)
    program(one, one)
    np.testing.assert_allclose(one, 3 * start)
    assert len(list(tmp_path.iterdir())) == 2


@dace.program
def stepped(a: dace.float64[300]):
    for _ in range(M):
        a[:] = a + 1.0


@pytest.mark.parametrize("number", [np.int64, float, np.float32])
def test_a_symbol_that_no_shape_has_is_tuned_for_its_value(number: type, tmp_path: Path) -> None:
    program = gnnperf.tuned(k=1, remember=False, cache=tmp_path)(stepped)
    for steps in (10, 20):
        one = np.zeros(300)
        program(one, M=number(steps))
        np.testing.assert_allclose(one, steps)
    assert len(list(tmp_path.iterdir())) == 2


def test_competitors_and_callers_know_both_names_of_one_array(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text("def blend(a, b):\n    assert a is b\n    b *= 3.0\n")
    one = np.linspace(0.0, 1.0, 300)
    found = Session(store=False).retrieve(blend, a=one, b=one, k=1, competitors=[f"{path}:blend"])
    (competitor,) = found.to_dict()["beside"]
    assert competitor.status == "ok"
    start = one.copy()
    found.call(a=one, b=one)
    found.call(a=one)
    np.testing.assert_allclose(one, 9 * start)
    with pytest.raises(TypeError, match="b: expected what a is, as when"):
        found.call(a=one, b=start)


def test_loading_a_tuned_program_leaves_subnormals_alone(tmp_path: Path) -> None:
    program = gnnperf.tuned(k=1, remember=False, cache=tmp_path)(product)
    program(np.eye(160, dtype=np.float32), np.eye(160, dtype=np.float32))
    (folder,) = tmp_path.iterdir()
    assert (folder / "libkernel.so").is_file()
    assert np.float32(1e-40) * np.float32(0.5) > 0


def test_on_any_trouble_the_plain_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> Retrieval:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(Session, "retrieve", broken)
    program, given = gnnperf.tuned(cache=tmp_path)(row_sums), arguments(20, 30)
    with caplog.at_level(logging.WARNING, "gnnperf"):
        program(**given)
        program(**given)
    assert caplog.messages == ["row_sums: not tuned, the plain program runs: the disk is full"]
    check(given)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_array_goes_to_the_plain_program(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Cannot infer values for symbols"):  # DaCe's own words
        gnnperf.tuned(cache=tmp_path)(row_sums)("a", "b", "out")
    with pytest.raises(InputError, match="k of at least 1"):
        gnnperf.tuned(k=0)
