"""What DaCe misreads means what Python makes of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dace import symbolic
from dace.frontend.python.newast import ProgramVisitor
from dace.frontend.python.parser import DaceProgram
from frontends.kit import assert_same, interpret_program, run

from gnnperf.errors import InputError
from gnnperf.frontends.dace import load_kernel
from gnnperf.frontends.dace.source import load_program
from gnnperf.measure import Compiler, Runner
from gnnperf.nests.analysis import extent

PROGRAMS = Path(__file__).parent / "misread.py"
SIZES: dict[str, dict[str, int]] = {
    "decimated": dict(N=23, M=4, K=8),
    "looking_back": dict(N=7),
    "triangle": dict(N=7),
    "falling_counter": dict(N=7, M=2, K=2),
    "reversed_window": dict(N=7, M=5),
    "two_ways": dict(N=6),
    "down_a_column": dict(N=5, K=4),
    "counted_by_two": dict(N=8, M=2, K=5),
    "parts_of_rows": dict(N=9, M=3, K=4),
    "held_numbers": dict(N=6, M=3),
    "held_in_a_map": dict(N=6, M=3),
    "rolled": dict(N=7, M=5),
    "spread": dict(N=6, M=4),
    "differences": dict(N=6, M=4),
    "words_of_cpp": dict(N=6, M=4),
    "choices": dict(N=7),
    "every_second": dict(N=6, M=4),
    "kept_axes": dict(N=6, M=4),
    "as_methods": dict(N=6, M=4),
    "filled": dict(N=7),
    "centred": dict(N=6, M=4, steps=3),
    "rolled_steps": dict(N=6, M=4, steps=3),
    "assembled": dict(N=4, M=30),
    "walls": dict(N=7, steps=2),
    "both_ways": dict(N=6, M=4),
    "named_sizes": dict(N=7, M=4),
    "quotients": dict(N=7, M=4),
    "repeated": dict(N=5, most=4, tolerance=0),
    "halving": dict(N=8, M=2),
    "truths": dict(N=6, M=4),
    "remainders": dict(N=6, M=3),
    "copies": dict(N=6, M=4),
    "scattered": dict(N=6, M=4),
    "whole_numbers": dict(N=6, M=4),
    "spread_together": dict(N=6, M=4),
    "put_elsewhere": dict(N=6, M=4),
    "diagonals": dict(N=6),
    "of_neighbours": dict(N=6, M=4),
    "grids": dict(N=6, M=4),
    "looked_up": dict(N=7, M=9),
    "crossed": dict(N=6),
    "whole_at_first": dict(N=6, M=4),
    "rounded_down": dict(N=7, M=4),
    "nearest": dict(N=6, M=4),
    "lengths": dict(N=6, M=4),
    "narrowed": dict(N=6, M=4),
    "counters_again": dict(N=6),
    "left_early": dict(N=9, M=4),
    "counters_below_zero": dict(N=9),
    "chosen_numbers": dict(N=6, M=4),
    "more_functions": dict(N=6, M=4),
    "one_number": {},
    "rolled_round": dict(N=3),
    "one_wide": dict(N=6, M=5),
    "round_the_edges": dict(N=7, M=5, steps=2),
    "thin_products": dict(N=6, M=5, K=3),
    "parts_in_turn": dict(N=6, M=4),
    "turned": dict(N=6, M=4),
    "steps_in_maps": dict(N=3, M=4),
    "wide_in_maps": dict(N=3, M=4),
    "stores_in_maps": dict(N=3, M=5),
    "clamped_places": dict(N=6, M=5, K=3),
    "halves_of_maps": dict(N=7, M=4, K=3),
    "formulas": dict(N=7, M=4),
    "numbers_in_the_text": dict(N=7),
    "rolled_by_counters": dict(N=5, M=4),
    "powers_of_counters": dict(N=6, M=4),
    "wider_of_two": dict(N=6, M=4),
    "bits_of_unsigned": dict(N=6, M=4),
    "unsigned_numbers": dict(N=6),
    "sums_of_products_in_a_loop": dict(N=4, M=5, K=3),
    "indices_in_any_order": dict(N=4, M=5, K=3),
    "places_from_the_end": dict(N=6, M=5),
    "halves_of_even_sizes": dict(N=6, M=4),
    "halves_to_even": dict(N=9),
    "functions_of_math": dict(N=7),
    "bits_of_counters": dict(N=8),
    "lists_of_numbers": dict(N=9),
    "extremes_and_sums": dict(N=6, M=4),
    "waiting_stores": dict(N=16),
    "chosen_by_masks": dict(N=7, M=5),
    "norms_of_vectors": dict(N=7, M=5),
    "names_swapped": dict(N=9, K=4),
    "names_rotated": dict(N=9, K=4),
    "names_of_copies": dict(N=9),
    "numbers_in_turn": dict(N=7),
    "one_name_after_another": dict(N=6, M=5, K=4),
    "views_that_are_written": dict(N=6),
    "names_of_parts": dict(N=6, M=5),
    "taken_at_places": dict(N=6, M=5, K=4),
    "methods_in_chains": dict(N=6, M=5),
    "functions_with_names": dict(N=6),
    "sums_of_generators": dict(N=6, M=5),
    "rows_exchanged": dict(N=6, M=5, k=4),
    "counted_in_pairs": dict(N=6),
    "named_in_a_test": dict(N=9),
    "quotients_with_remainders": dict(N=6),
    "said_otherwise": dict(N=9),
    "part_of_either": dict(N=6, M=4),
    "bits_counted": dict(N=6),
    "parts_of_results": dict(N=6, M=5),
    "listed_parts": dict(N=6, M=5),
    "places_along_axes": dict(N=6, M=5, K=4),
    "stored_at_places": dict(N=6, M=5, K=4),
    "histograms": dict(N=41),
    "longer_arrays": dict(N=6),
    "powers_and_places": dict(N=6, M=4),
    "complex_numbers": dict(N=7),
    "slices_with_names": dict(N=7, M=6),
    "ends_of_slices": dict(N=7, M=6),
    "arrays_of_variables": dict(N=6),
    "in_stages": {},
}


@pytest.mark.parametrize("name", SIZES)
def test_programs_mean_what_python_makes_of_them(name: str) -> None:
    kernel = load_kernel(f"{PROGRAMS}:{name}", SIZES[name])
    assert not kernel.notes
    expected = of_python(load_program(f"{PROGRAMS}:{name}"), kernel.data, SIZES[name])
    got = interpret_program(kernel)
    assert_same({output: expected[output] for output in kernel.outputs}, got, name)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("transforms_along_axes", dict(N=6, M=37)),
        ("transforms_of_real_numbers", dict(N=8, M=4)),
        ("transforms_of_real_numbers", dict(N=7, M=5)),
        ("frequencies", dict(N=9, M=4)),
    ],
)
def test_programs_that_call_functions_mean_what_python_makes_of_them(
    name: str, sizes: dict[str, int], compiler: Compiler, runner: Runner
) -> None:
    kernel = load_kernel(f"{PROGRAMS}:{name}", sizes)
    assert {part.reason for part in kernel.skipped} == {"a tasklet written in C++"} and not kernel.notes
    expected = of_python(load_program(f"{PROGRAMS}:{name}"), kernel.data, sizes)
    got = run(runner, kernel, compiler.build(kernel.plain_source()))
    assert_same({output: expected[output] for output in kernel.outputs}, got, name)


def test_loops_over_the_bits_of_a_word_are_written_out() -> None:
    """Sums of integers are no longer than what they are stored in, whatever DaCe computes them in."""
    kernel = load_kernel(f"{PROGRAMS}:bits_counted", SIZES["bits_counted"])
    assert {extent(lp) for unit in kernel.units for lp in unit.nest.loops()} == {6}
    assert all(lp.independent for unit in kernel.units for lp in unit.nest.loops())


def test_names_that_a_condition_swaps_are_refused() -> None:
    with pytest.raises(InputError, match="names of arrays that change places there"):
        load_kernel(f"{PROGRAMS}:names_that_a_condition_swaps", {"N": 6})


def test_what_a_program_is_read_for_are_its_sizes() -> None:
    kernel = load_kernel(f"{PROGRAMS}:halves_of_even_sizes", SIZES["halves_of_even_sizes"])
    assert kernel.sizes == {"N": 6, "M": 4}
    with pytest.raises(InputError, match=r"cannot parse .*given sizes: no value for the symbols M, N; give"):
        load_kernel(f"{PROGRAMS}:halves_of_even_sizes")
    with pytest.raises(InputError, match=r"cannot parse 'halves_of_even_sizes': .* in"):
        load_kernel(f"{PROGRAMS}:halves_of_even_sizes", {"N": 7, "M": 4})


def test_slices_of_one_element_as_dace_has_them_where_python_s_meaning_is_refused() -> None:
    kernel = load_kernel(f"{PROGRAMS}:outer_of_thin_slices", {"N": 5})
    assert "without their axis, as DaCe has them: with it, as in Python" in kernel.notes[0]
    assert "Cannot multiply" in kernel.notes[0]
    x, w = kernel.data["x"][:, 0], kernel.data["w"]
    assert interpret_program(kernel)["y"] == pytest.approx((x[None] - x[:, None]) @ w)


def test_programs_need_not_import_what_is_read_in_the_place_of_theirs(tmp_path: Path) -> None:
    (tmp_path / "bare.py").write_text(
        "import dace as dc\n\nN = dc.symbol('N')\n\n@dc.program\n"
        "def bare(x: dc.float64[N], y: dc.float64[N]):\n    weights = [0.5, 2.0]\n"
        "    y[:] = (x - 0.5) % 0.2 + max(x) - x[x > 0.3].max()\n"
        "    for i in dc.map[0:N]:\n        y[i] += weights[i & 1] * int(3.0 * x[i]) + (i ^ 3) % 5\n"
    )
    kernel = load_kernel(f"{tmp_path}/bare.py:bare", {"N": 8})
    x = kernel.data["x"]
    places = np.arange(8)
    expected = (x - 0.5) % 0.2 + x.max() - x[x > 0.3].max()
    expected += np.array([0.5, 2.0])[places & 1] * np.trunc(3.0 * x) + (places ^ 3) % 5
    assert interpret_program(kernel)["y"] == pytest.approx(expected)


def test_names_of_arrays_that_a_branch_decides_are_refused() -> None:
    with pytest.raises(InputError, match="Cannot reassign"):
        load_kernel(f"{PROGRAMS}:either_array", {"N": 6})


def test_the_parser_is_dace_s_own_again_afterwards() -> None:
    before = dict(vars(ProgramVisitor))
    load_kernel(f"{PROGRAMS}:looking_back", SIZES["looking_back"])
    assert dict(vars(ProgramVisitor)) == before


def test_numbers_of_one_program_are_not_those_of_the_next() -> None:
    """DaCe remembers 2.0, of a square, where 2 is asked for."""
    symbolic.pystr_to_symbolic.cache_clear()
    symbolic.pystr_to_symbolic(2.0)
    kernel = load_kernel(f"{PROGRAMS}:third_column", {"N": 6, "M": 4})
    assert ".0" not in "".join(re.findall(r"x \+ [^,]*,|x\[[^]]*\]", kernel.plain_source().text))


def of_python(program: DaceProgram, data: dict[str, Any], sizes: dict[str, int]) -> dict[str, Any]:
    """The arguments once Python has run the program's function."""
    arguments = {n: np.array(v) for n, v in data.items() if n in program.argnames}
    program.f.__globals__.update(sizes)
    program.f(**arguments)
    return arguments
