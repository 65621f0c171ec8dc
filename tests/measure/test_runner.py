from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnnperf.devices import MachineLock
from gnnperf.errors import InputError, MeasureError
from gnnperf.measure import Argument, Compiler, Library, Limits, Runner, Source
from gnnperf.measure.candidate import sample

Build = Callable[..., list[Library]]
Data = dict[str, Any]

QUICK = Limits(budget_s=0.001)


def test_an_ok_measurement_is_complete(
    build: Build, baseline: Library, runner: Runner, data: Data, compiler: Compiler
) -> None:
    (candidate,) = build("for (int64_t i = n - 1; i >= 0; --i) y[i] = x[i] + x[i];")
    reference = runner.reference(baseline, data, ["y"])
    np.testing.assert_array_equal(reference["y"], 2 * data["x"])
    measured = runner.measure(baseline, candidate, data, ["y"], reference=reference, limits=QUICK)
    assert measured.status == "ok"
    assert measured.samples >= 6
    for median, interval in (
        (measured.runtime_s, measured.interval_s),
        (measured.baseline_s, measured.baseline_interval_s),
        (measured.speedup, measured.speedup_interval),
    ):
        assert median is not None
        assert interval is not None
        assert 0 < interval[0] <= median <= interval[1]
    assert measured.baseline_s is not None
    assert measured.speedup == measured.baseline_s / (measured.runtime_s or 0)
    assert measured.threads == 2
    assert measured.compiler == compiler.version
    assert "-march=native" in measured.flags
    assert set(measured.to_dict()) >= {"status", "runtime_s", "interval_s", "speedup", "detail"}


def test_without_baseline_and_in_several_processes(baseline: Library, runner: Runner, data: Data) -> None:
    alone = runner.measure(None, baseline, data, ["y"], limits=QUICK)
    assert (alone.status, alone.baseline_s, alone.speedup) == ("ok", None, None)
    several = runner.measure(None, baseline, data, ["y"], limits=Limits(budget_s=0, processes=3))
    assert (several.status, several.samples) == ("ok", 18)


def test_the_users_arrays_are_never_written(build: Build, runner: Runner, data: Data) -> None:
    (candidate,) = build("y[0] = 99; x[0] = 99;")
    before = data["x"].copy()
    runner.measure(None, candidate, data, ["y"], limits=QUICK)
    np.testing.assert_array_equal(data["x"], before)
    np.testing.assert_array_equal(data["y"], np.ones_like(before))


def test_data_that_changed_between_calls_travels_again(baseline: Library, runner: Runner, data: Data) -> None:
    reference = runner.reference(baseline, data, ["y"])
    data["x"] += 1
    stale = runner.measure(baseline, baseline, data, ["y"], reference=reference, limits=QUICK)
    assert stale.status == "wrong_result"
    reference = runner.reference(baseline, data, ["y"])
    assert runner.measure(baseline, baseline, data, ["y"], reference=reference, limits=QUICK).status == "ok"


def test_inouts_start_from_the_data_in_every_run(build: Build, runner: Runner, data: Data) -> None:
    (candidate,) = build("if (y[0] != 1) abort(); for (int64_t i = 0; i < n; ++i) y[i] += x[i];")
    reference = runner.reference(candidate, data, ["y"], ["y"])
    np.testing.assert_allclose(reference["y"], 1 + data["x"])
    measured = runner.measure(candidate, candidate, data, ["y"], ["y"], reference, QUICK)
    assert measured.status == "ok"


def test_what_is_not_read_is_left_where_the_last_run_wrote_it(
    build: Build, runner: Runner, data: Data
) -> None:
    (candidate,) = build(
        "static int runs; if (1 <= runs && runs < 4 && y[1] != x[1]) abort();"
        "for (int64_t i = 1; i < n - 1; ++i) y[i] = x[i]; ++runs;"
    )
    reference = runner.reference(candidate, data, ["y"], ["y"])
    for updated, status in (((), "ok"), (None, "run_error"), (("y",), "run_error")):
        measured = runner.measure(None, candidate, data, ["y"], ["y"], reference, QUICK, updated=updated)
        assert measured.status == status, measured.detail


def test_an_output_written_in_part_is_compared_in_whole(build: Build, runner: Runner, data: Data) -> None:
    """Elements that the reference leaves alone must be left alone, whatever they held."""
    interior, all_of_it = build(
        "for (int64_t i = 1; i < n - 1; ++i) y[i] = x[i];", "for (int64_t i = 0; i < n; ++i) y[i] = x[i];"
    )
    for inouts in ([], ["y"]):
        reference = runner.reference(interior, data, ["y"], inouts)
        assert np.isnan(reference["y"][0]) == (not inouts)
        same = runner.measure(None, interior, data, ["y"], inouts, reference, QUICK)
        more = runner.measure(None, all_of_it, data, ["y"], inouts, reference, QUICK)
        assert (same.status, more.status) == ("ok", "wrong_result")


@pytest.mark.parametrize("value", [0, 1])
def test_integer_and_boolean_outputs_are_poisoned_too(compiler: Compiler, runner: Runner, value: int) -> None:
    text = 'extern "C" void {}(int* a, bool* b) {{ for (int i = 0; i < {}; ++i) a[i] = b[i] = {}; }}'
    arguments = (Argument("a"), Argument("b"))
    whole, part = (
        compiler.build(Source(text.format(s, n, value), s, arguments)) for s, n in (("w", 8), ("p", 7))
    )
    data = {"a": np.zeros(8, np.int32), "b": np.zeros(8, bool)}
    reference = runner.reference(whole, data, ["a", "b"])
    assert (reference["a"] == value).all()
    assert (reference["b"] == bool(value)).all()
    for name in ("a", "b"):
        expected = {name: reference[name]}
        measured = runner.measure(None, part, data, ["a", "b"], reference=expected, limits=QUICK)
        assert "worst at [7]" in measured.detail


def test_scalars_by_value_and_by_pointer(compiler: Compiler, runner: Runner) -> None:
    text = """#include <cstdint>
    extern "C" void s(double* out, float f, double d, int i, int64_t l, bool b, unsigned char c, float* p) {
        out[0] = f; out[1] = d; out[2] = i; out[3] = l; out[4] = b; out[5] = c; out[6] = *p;
    }"""
    types = {"f": "float", "d": "double", "i": "int", "l": "int64_t", "b": "bool", "c": "unsigned char"}
    arguments = (Argument("out"), *(Argument(*pair) for pair in types.items()), Argument("p"))
    library = compiler.build(Source(text, "s", arguments))
    data = {
        "out": np.zeros(7), "f": 1.5, "d": np.float64(2.5), "i": np.int32(-3), "l": 1 << 40, "b": True,
        "c": np.uint8(200), "p": np.float32(0.25),
    }  # fmt: skip
    reference = runner.reference(library, data, ["out"])
    assert reference["out"].tolist() == [1.5, 2.5, -3, 1 << 40, 1, 200, 0.25]


def test_strided_arrays_keep_their_layout(build: Build, runner: Runner) -> None:
    """Every second element of x and y belongs to others; n strides."""
    (function,) = build("for (int64_t i = 0; i < n; ++i) y[2 * i] = 2 * x[2 * i];")
    data = {"x": np.arange(20.0)[::2], "y": np.arange(20.0)[::2], "n": 10}
    reference = runner.reference(function, data, ["y"])
    assert reference["y"].strides == (16,)
    np.testing.assert_array_equal(reference["y"], 2 * data["x"])
    measured = runner.measure(None, function, data, ["y"], reference=reference, limits=QUICK)
    assert measured.status == "ok"
    fortran = {
        "x": np.asfortranarray(np.arange(20.0).reshape(4, 5)),
        "y": np.zeros((4, 5), order="F"),
        "n": 10,
    }
    assert runner.reference(function, fortran, ["y"], ["y"])["y"].flags.f_contiguous
    with pytest.raises(MeasureError, match="'x': expected a plain dtype and no negative stride"):
        runner.reference(function, {**data, "x": data["x"][::-1]}, ["y"])


def test_empty_arrays(build: Build, runner: Runner) -> None:
    (function,) = build("for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];")
    data = {"x": np.zeros(0), "y": np.zeros((3, 0)), "n": 0}
    reference = runner.reference(function, data, ["y"])
    assert reference["y"].shape == (3, 0)
    assert runner.measure(function, function, data, ["y"], reference=reference, limits=QUICK).status == "ok"


def test_threads_are_as_many_as_asked_for_and_pinned(build: Build, runner: Runner, data: Data) -> None:
    (function,) = build(
        "memset(y, 0, 8 * n);"
        "y[0] = omp_get_max_threads(); y[1] = omp_get_proc_bind(); y[2] = omp_get_num_places();"
        'double used = 0; _Pragma("omp parallel reduction(+:used)") used += 1; y[3] = used;'
    )
    places = len(os.sched_getaffinity(0))
    for threads in (1, 2):
        reference = {"y": np.zeros_like(data["y"])}
        reference["y"][:4] = threads, 4, places, threads  # 4: omp_proc_bind_spread
        measured = runner.measure(
            None, function, data, ["y"], reference=reference, limits=QUICK, threads=threads
        )
        assert (measured.status, measured.detail, measured.threads) == ("ok", "", threads)


def test_a_hopeless_candidate_is_timed_once(
    build: Build, baseline: Library, runner: Runner, data: Data
) -> None:
    double = "for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];"
    for delay_us in (20_000, 200_000):  # given up after a warm run; after the very first
        (slow,) = build(f"usleep({delay_us}); " + double)
        measured = runner.measure(baseline, slow, data, ["y"], limits=Limits(cutoff=3))
        assert (measured.status, measured.samples) == ("ok", 1)
        assert measured.speedup is not None
        assert measured.speedup < 1 / 3


def test_waiting_for_the_machine_is_not_counted(baseline: Library, runner: Runner, data: Data) -> None:
    done: list[str] = []

    def measure() -> None:
        limits = Limits(timeout_s=0.3, budget_s=0)
        done.append(runner.measure(baseline, baseline, data, ["y"], limits=limits).status)

    thread = threading.Thread(target=measure)
    with MachineLock(runner._lock):
        thread.start()
        thread.join(1.0)
        assert thread.is_alive()
    thread.join(20)
    assert done == ["ok"]


@pytest.mark.parametrize(
    ("wanted", "threads"),
    [("3", 3), ("3,2", 3), *((bad, len(os.sched_getaffinity(0))) for bad in ("", "0", "-1", "many"))],
)
def test_threads_are_those_of_openmp(wanted: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", wanted)
    assert Runner().threads == threads


def test_more_threads_than_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "100000")
    with pytest.raises(InputError, match="OMP_NUM_THREADS: expected at most 1024 threads, got 100000"):
        Runner()


def test_one_runner_for_several_threads(baseline: Library, runner: Runner) -> None:
    results: list[bool] = []

    def measure(seed: int) -> None:
        data = {"x": np.full(100, float(seed)), "y": np.zeros(100), "n": 100}
        output = runner.reference(baseline, data, ["y"])["y"]
        results.append(bool((output == 2 * seed).all()))

    threads = [threading.Thread(target=measure, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 6


def test_requests_that_make_no_sense(baseline: Library, runner: Runner, data: Data) -> None:
    with pytest.raises(MeasureError, match=r"argument 'n' of .* has no value in data"):
        runner.reference(baseline, {"x": data["x"], "y": data["y"]}, ["y"])
    with pytest.raises(MeasureError, match="output 'z' has no array in data"):
        runner.reference(baseline, data, ["z"])
    odd = Library(baseline.path, baseline.symbol, (Argument("x", "quaternion"),))
    with pytest.raises(MeasureError, match=r"expected '\*' or one of .*, got 'quaternion'"):
        runner.reference(odd, data, ["y"])


def test_modules_in_the_users_folder_do_not_shadow_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, baseline: Library, data: Data
) -> None:
    (tmp_path / "numpy.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    with Runner() as here:
        assert here.measure(None, baseline, data, ["y"], limits=QUICK).status == "ok"


def test_a_closed_runner_starts_again(baseline: Library, data: Data) -> None:
    runner = Runner()
    for _ in range(2):
        assert runner.measure(None, baseline, data, ["y"], limits=QUICK).status == "ok"
        runner.close()


def test_sampling_takes_turns_and_stops_when_it_knows_enough() -> None:
    order: list[str] = []
    limits = {"budget_s": 1e9, "target": 1e9, "min_samples": 4, "max_samples": 10, "cutoff": 1e9}
    calls = [lambda: order.append("a"), lambda: order.append("b")]
    nothing = lambda: None  # noqa: E731
    samples = sample(calls, [0.1, 0.1], nothing, {**limits, "budget_s": 0.0}, nothing)
    assert [len(s) for s in samples] == [4, 4]
    assert "".join(order) == "ab" + "abba" * 2  # warm-up, then in turns
    samples = sample(calls, [0.1, 0.1], nothing, limits, nothing)
    assert [len(s) for s in samples] == [10, 10]  # max_samples: a fifth of the budget never passes


def test_a_slow_baseline_that_is_outclassed_is_run_twice() -> None:
    limits = {"budget_s": 0.0, "target": 0.01, "min_samples": 6, "max_samples": 10, "cutoff": 10.0}
    nothing = lambda: None  # noqa: E731
    calls = [lambda: time.sleep(0.11), nothing]
    assert [len(s) for s in sample(calls, [0.1, 0.0], nothing, limits, nothing)] == [2, 6]
    calls = [lambda: time.sleep(0.001), nothing]
    assert [len(s) for s in sample(calls, [0.001, 0.0], nothing, limits, nothing)] == [6, 6]


def test_what_takes_seconds_is_run_no_more_often_than_it_must() -> None:
    limits = {"budget_s": 0.0, "target": 0.01, "min_samples": 6, "max_samples": 10, "cutoff": 10.0}
    nothing = lambda: None  # noqa: E731
    runs: list[str] = []
    calls = [lambda: runs.append("a"), lambda: runs.append("b")]

    slow, ours = sample(calls, [1.5, 0.01], nothing, limits, nothing)
    assert slow == [1.5] and len(ours) == 6
    assert "a" not in runs  # the first run says how long it takes

    runs.clear()
    slow, ours = sample(calls[1:], [1.5, 0.01], nothing, limits, nothing)  # timed beside another candidate
    assert slow == [1.5] and len(ours) == 6
    assert sample(calls[:1], [1.5], nothing, limits, nothing) == [[1.5]]  # alone

    runs.clear()
    assert sample(calls, [1.5, 2.0], nothing, limits, nothing) == [[1.5], [2.0]]
    assert not runs  # a third slower: it will not win
    assert sample(calls, [0.12, 0.4], nothing, limits, nothing) == [[0.12], [0.4]]
    assert not runs  # nor will what takes three times as long

    assert [len(s) for s in sample(calls, [1.5, 1.6], nothing, limits, nothing)] == [6, 6]
    assert runs.count("a") == runs.count("b") == 6  # none to warm up


def test_a_baseline_that_was_timed_before_makes_the_speedup(
    baseline: Library, runner: Runner, data: Data
) -> None:
    measured = runner.measure(None, baseline, data, ["y"], limits=QUICK, baseline_s=3.0)
    assert measured.status == "ok" and measured.runtime_s is not None
    assert (measured.baseline_s, measured.speedup) == (3.0, 3.0 / measured.runtime_s)


def test_dace_code(runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What DaCe generates for a program with a symbol, a scalar and state, by its own protocol."""
    import dace
    from dace.codegen import codegen

    monkeypatch.chdir(tmp_path)  # DaCe leaves files behind where it is called
    sources = []
    for name in ("first", "second"):
        sdfg = dace.SDFG(name)
        n = dace.symbol("N", dace.int32)
        for array in ("x", "y"):
            sdfg.add_array(array, [n], dace.float64)
        sdfg.add_scalar("a", dace.float64)
        sdfg.add_state().add_mapped_tasklet(
            "axpy",
            {"i": "0:N"},
            {"s": dace.Memlet("a[0]"), "p": dace.Memlet("x[i]"), "q": dace.Memlet("y[i]")},
            "r = s * p + q",
            {"r": dace.Memlet("y[i]")},
            external_edges=True,
        )
        (code,) = (o for o in codegen.generate_code(sdfg) if o.language == "cpp" and o.linkable)
        # DaCe gives helper functions of different programs the same names.
        text = code.clean_code + "\ninline void nested() {}\n"
        scalars = {"a": "double", "N": "int"}
        arguments = tuple(Argument(key, scalars.get(key, "*")) for key in sdfg.arglist())
        assert {argument.name for argument in arguments} == {"x", "y", "a", "N"}
        sources.append(Source(text, name, arguments, "dace", init=(Argument("N", "int"),)))
    data = {"a": 2.0, "x": np.arange(50.0), "y": np.ones(50), "N": 50}
    with Compiler(jobs=1) as compiler:
        first, second = compiler.build_all(sources)
        assert isinstance(first, Library)
        assert isinstance(second, Library)
        assert first.path == second.path
        reference = runner.reference(first, data, ["y"], ["y"])
        np.testing.assert_allclose(reference["y"], 2 * data["x"] + 1)
        assert runner.measure(first, second, data, ["y"], ["y"], reference, QUICK).status == "ok"
