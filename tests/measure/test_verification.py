from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnperf.measure import Evidence, equivalent_length, is_stable, perturbed, relative_tolerance, verify
from gnnperf.measure.verification import root_mean_square

FLOATS = [np.float16, np.float32, np.float64]
INTEGERS = [np.bool_, np.uint8, np.int32, np.int64]


def arrays(values: Any, dtype: Any) -> dict[str, Any]:
    return {"a": np.array(values, dtype)}


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, np.complex64, np.complex128])
def test_equal_is_right(dtype: Any) -> None:
    assert verify(arrays([[0, 1], [1, 0]], dtype), arrays([[0, 1], [1, 0]], dtype)) is None


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_and_booleans_are_exact(dtype: Any) -> None:
    problem = verify(arrays([0, 1, 1, 0], dtype), arrays([0, 1, 0, 0], dtype), reduction_length=10**6)
    assert problem is not None
    assert problem.startswith("a: 1 of 4 elements differ; worst at [2]")


def test_large_integers_do_not_pass_through_floating_point() -> None:
    assert verify(arrays([2**62], np.int64), arrays([2**62 + 1], np.int64)) is not None


@pytest.mark.parametrize("dtype", [*FLOATS, np.complex64, np.complex128])
def test_rounding_is_right_and_a_wrong_number_is_not(dtype: Any) -> None:
    good = np.linspace(1, 2, 1000).astype(dtype)
    rounded = good * (1 + 2 * np.finfo(dtype).eps)
    assert verify({"a": good}, {"a": rounded.astype(dtype)}) is None
    wrong = good.copy()
    wrong[123] *= 1.05
    problem = verify({"a": good}, {"a": wrong})
    assert problem is not None
    assert "1 of 1000 elements differ; worst at [123]" in problem


def test_zeros_may_carry_the_rounding_errors_of_the_largest_output() -> None:
    """Of terms of size 2 that cancel exactly in one order of operations, and not in another."""
    reference = {"still": np.zeros(4), "moves": np.full(4, 2.0), "count": np.zeros(4, int)}

    def found(value: float, name: str = "still") -> dict[str, Any]:
        return {**reference, name: (reference[name] + value).astype(reference[name].dtype)}

    assert verify(reference, found(3e-15)) is None  # eight roundings of 2.0: 8 * 2.2e-16 * 2
    problem = verify(reference, found(4e-15))
    assert problem is not None and problem.startswith("still: 4 of 4 elements differ")
    assert verify({"still": np.zeros(4)}, {"still": np.full(4, 1e-300)}) is not None
    assert verify(reference, found(1, "count")) is not None


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_one_in_a_hundred_integers_made_of_real_numbers_may_be_one_off(dtype: Any) -> None:
    reference = arrays(np.full(1000, 7), dtype)

    def found(count: int, by: int) -> dict[str, Any]:
        values = np.full(1000, 7)
        values[:count] += by
        return arrays(values, dtype)

    assert verify(reference, found(10, -1), quantised=["a"]) is None
    assert verify(reference, found(10, 1), quantised=["a"]) is None
    for wrong in (found(11, 1), found(1, 2), arrays(np.full(999, 7), dtype)):
        assert verify(reference, wrong, quantised=["a"]) is not None
    assert verify(reference, found(1, 1), quantised=["b"]) is not None


def test_bfloat16_is_judged_by_its_own_rounding() -> None:
    """NumPy does not count it among the types of numbers."""
    dtype = np.dtype(ml_dtypes.bfloat16)
    good = np.linspace(1, 2, 1000).astype(dtype)
    (rounded,) = perturbed({"a": good}).values()
    assert rounded.dtype == dtype and (rounded != good).any()
    assert verify({"a": good}, {"a": rounded}) is None
    assert equivalent_length({"a": good}, {"a": rounded}, 1) < 100
    wrong = good.copy()
    wrong[123] *= 1.25
    wrong[4] = np.nan
    said = str(verify({"a": good}, {"a": wrong}))
    assert "2 of 1000 elements differ; worst at [4]: expected 1.0" in said
    assert verify({"a": good}, {"a": good.astype(np.float32)}) is not None
    assert Evidence.of({"a": wrong}, {}).finite == 0.999
    assert "no element" in Evidence.of({"a": good * np.nan}, {}).unverifiable["a"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [10, 1000, 100_000])
def test_any_order_of_summation_is_right(dtype: Any, n: int) -> None:
    rng = np.random.default_rng(n)
    terms = rng.uniform(-1, 1, (50, n)).astype(dtype)
    forwards = np.add.accumulate(terms, axis=1)[:, -1]
    blocked = terms.reshape(50, 10, -1).sum(axis=1).sum(axis=1)
    assert verify({"a": forwards}, {"a": blocked}, n) is None
    assert verify({"a": forwards}, {"a": terms[:, n // 10 :].sum(axis=1)}, n) is not None


def test_tolerance_grows_with_the_reduction_and_is_capped() -> None:
    for dtype in map(np.dtype, FLOATS):
        growing = [relative_tolerance(dtype, n) for n in (1, 4, 10**12)]
        assert growing[0] < growing[1] < growing[2] < 0.1
    assert relative_tolerance(np.dtype(np.int32), 10**6) == 0


def softmax(logits: Any) -> dict[str, Any]:
    e = np.exp(logits - logits.max())
    return {"a": e / e.sum()}


def test_programs_that_amplify_roundings_are_judged_by_what_one_rounding_does() -> None:
    logits = np.random.default_rng(1).uniform(4000, 4004, 5000).astype(np.float32)
    expected, reordered = softmax(logits), softmax(perturbed({"x": logits[::-1]})["x"][::-1])
    assert verify(expected, reordered) is not None
    length = equivalent_length(expected, softmax(perturbed({"x": logits})["x"]), 1)
    assert verify(expected, reordered, length) is None
    assert verify(expected, {"a": expected["a"] * np.float32(1.1)}, length) is not None


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_programs_that_do_not_keep_their_tolerance(dtype: Any) -> None:
    x = np.random.default_rng(2).uniform(0.5, 1.5, 3000).astype(dtype)
    moved = perturbed({"x": x, "n": 3, "i": np.arange(4)})
    assert equivalent_length({"a": 3 * x}, {"a": 3 * moved["x"]}, 7) == 7
    assert moved["x"].dtype == x.dtype
    assert (moved["x"] != x).all()
    assert moved["n"] == 3
    assert np.array_equal(moved["i"], np.arange(4))


def test_cancellation_is_judged_at_the_scale_of_the_array() -> None:
    large, residue = np.full(100, 1e3), np.array([1e-14])
    reference = {"a": np.concatenate([large, residue])}
    assert verify(reference, {"a": np.concatenate([large, -residue])}) is None
    assert verify({"a": residue}, {"a": -residue}) is not None


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_special_values_must_be_where_the_reference_has_them(special: float) -> None:
    with_special, without = arrays([1, special, 3], np.float64), arrays([1, 2, 3], np.float64)
    assert verify(with_special, with_special) is None
    assert verify(with_special, without) is not None
    assert verify(without, with_special) is not None
    assert verify(arrays([special], np.float64), arrays([-np.inf if special > 0 else 5], np.float64))


def test_special_values_do_not_widen_the_tolerance_of_others() -> None:
    assert verify(arrays([np.inf, np.nan, 1], np.float64), arrays([np.inf, np.nan, 1.001], np.float64))


@given(st.lists(st.floats(width=32), max_size=50))
def test_anything_agrees_with_itself(values: list[float]) -> None:
    assert verify(arrays(values, np.float32), arrays(values, np.float32)) is None


def test_shapes_types_and_names_are_compared() -> None:
    reference = arrays([1, 2], np.float32)
    assert verify(reference, {}) == "a: no such output"
    assert verify(reference, arrays([[1, 2]], np.float32)) == "a: expected float32[2], got float32[1, 2]"
    assert verify(reference, arrays([1, 2], np.float64)) == "a: expected float32[2], got float64[2]"
    assert verify(arrays([], np.float32), arrays([], np.float32)) is None
    assert verify(arrays(1.0, np.float32), arrays(2.0, np.float32)) is not None


def test_large_and_strided_arrays() -> None:
    base = np.zeros((3, 1 << 20))
    reference = base[:, ::2]
    wrong = reference.copy()
    wrong[2, 77] = 1
    problem = verify({"a": reference}, {"a": wrong})
    assert problem is not None
    assert "1 of 1572864 elements differ; worst at [2, 77]" in problem


def test_root_mean_square_neither_overflows_nor_sees_special_values() -> None:
    assert root_mean_square(np.array([3e200, np.nan, 4e200, np.inf])) == pytest.approx(12.5**0.5 * 1e200)
    assert root_mean_square(np.array([np.nan])) == 0
    assert root_mean_square(np.zeros(0)) == 0


def test_evidence_counts_numbers_and_changes_and_names_outputs_that_tell_nothing() -> None:
    nan = np.full(4, np.nan)
    half = np.array([1.0, np.nan, 2.0, np.inf])
    reference = {"half": half, "nan": nan, "kept": np.arange(4.0), "flat": np.full((2, 2), 7)}
    evidence = Evidence.of(reference, {"kept": np.arange(4.0), "half": np.array([1.0, np.nan, 3.0, 3.0])})
    assert evidence.finite == (2 + 0 + 4 + 4) / 16
    assert evidence.changed == (2 + 4 + 0 + 4) / 16
    assert evidence.unverifiable == {
        "nan": "no element is a finite number",
        "kept": "it stays as it was",
        "flat": "all elements are 7",
    }


def test_one_number_is_not_constant_and_other_inputs_may_tell_more() -> None:
    assert Evidence.of({"sum": np.array([3.0])}, {}).unverifiable == {}
    flat = Evidence.of({"x": np.zeros(3)}, {})
    told = flat.joined(Evidence.of({"x": np.arange(3.0)}, {}), "others")
    assert flat.unverifiable and not told.unverifiable
    assert [*told.inputs] == ["the inputs", "others"]


@pytest.mark.parametrize(("moved", "stable"), [(1.01, True), (1.03, False), (np.nan, True)])
def test_results_are_stable_where_a_rounding_changes_them_by_less_than_is_ever_tolerated(
    moved: float, stable: bool
) -> None:
    """Of float32 that is a hundredth of an element and of the mean square, 2 here; of integers nothing is
    said."""
    one, other = np.ones(100, np.float32), np.array([moved, *[1.0] * 99], np.float32)
    index = np.arange(3)
    assert is_stable({"a": one, "at": index}, {"a": other, "at": index[::-1]}) == stable
    assert is_stable({"a": 0 * one}, {"a": other - one})


@pytest.mark.parametrize(("becomes", "stable"), [(0.0, True), (4e-16, True), (7.5e-9, False)])
def test_zeros_are_stable_as_far_as_rounding_errors_of_other_outputs_go(becomes: float, stable: bool) -> None:
    """A deviation, the root of a difference that cancels, may become as large as the root of a rounding."""
    mean, deviation = np.ones(9), np.zeros(9)
    moved = {"mean": mean, "deviation": deviation + becomes}
    reference = {"mean": mean, "deviation": deviation}
    assert is_stable(reference, moved) == stable
    assert equivalent_length(reference, moved, 5) == 5
    assert (verify(reference, moved) is None) == stable
