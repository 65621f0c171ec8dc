"""What the terminal says of a retrieval."""

from __future__ import annotations

from report.made_up import nest, retrieval
from rich.console import Console

from gnnperf.cli.retrieval_view import retrieval_view


def shown(*nests: object) -> list[str]:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(retrieval_view(retrieval(*nests), explain=False))  # type: ignore[arg-type]
    return capture.get().splitlines()


def test_what_is_kept_without_a_trial_of_its_own_is_said() -> None:
    """As of a nest that is like another, or one whose own baseline the whole is given."""
    taken = nest(accepted={"number": 99}, accepted_words="calls of BLAS", candidates=[])
    (line,) = [line for line in shown(taken) if line.strip().startswith("gemm")]
    assert "calls of BLAS" in line and line.split()[-1] == "kept"
    assert "abstained" not in line


def test_a_baseline_of_its_own_is_compared() -> None:
    note = "dace-auto takes 18.4 times as long"
    own, same = nest(baseline_name="loops+openblas", baseline_note=note), nest()
    said = [line for line in shown(own, same) if line.startswith("baseline of")]
    assert said == [f"baseline of gemm is loops+openblas: {note}"]
