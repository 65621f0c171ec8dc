"""A corpus of which every policy's answers are known, made up for the tests of the replay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from helpers.nests import small_nest
from helpers.synthetic import held_nest, measurement, write_corpus

from gnnperf.evaluation.replay import Answer
from gnnperf.training import Corpus
from gnnperf.training.regret import Relative

OPERATIONS = ("add", "mul", "exp", "div")
GOOD, FAIR, OWN = 0.25, 0.5, 0.125


def line(digest: str, schedule: str, runtime_s: float | None, **changes: Any) -> dict[str, Any]:
    """A measurement that differs in its last digits from all others, as those of other code do, of a
    schedule that is a default, if nothing else is said."""
    unlike = None if runtime_s is None else runtime_s * (1 + 1e-6 * sum(map(ord, schedule)))
    return measurement(digest, schedule, unlike, **{"origin": "default", **changes})


def two_tastes(
    folder: Path,
    own: Sequence[tuple[str, float]] = (),
    sizes: Sequence[int] = (64, 128),
    contrary: bool = False,
) -> Path:
    """Eight families of real nests in some sizes: "map_*" want schedule "stream", "reduce_*" want "tile".

    On all nests: "tile" and "stream" work (`GOOD` or `FAIR`), "wrong" fails, "unfit" does not apply. `own`:
    (origin, runtime) of the schedules that each nest's own search tried, which no other nest knows. contrary:
    each wants what the others do, as on another machine.
    """
    nests, lines = [], []
    for reduction in (False, True):
        for operation in OPERATIONS:
            for size in sizes:
                found = small_nest(size, size // 2, reduction, operation)
                nests.append(held_nest(found, found.name, parameters={"N": size}))
                task = nests[-1]["task"]
                liked, other = ("tile", "stream") if reduction != contrary else ("stream", "tile")
                lines += [line(task, liked, GOOD), line(task, other, FAIR)]
                lines += [line(task, "wrong", None)]
                lines += [line(task, "unfit", None, status="not_applicable")]
                lines += [
                    line(task, f"{found.name}_{size}_{at}", runtime_s, origin=origin)
                    for at, (origin, runtime_s) in enumerate(own)
                ]
    return write_corpus(folder, nests, lines)


def answers(
    corpus: Corpus, row: str, shares: Sequence[float], seed: int = 0, spearman: float | None = None
) -> list[Answer]:
    """What one policy reached with its first candidate on each nest, as shares of the baseline's runtime.
    Families are dealt to four folds."""
    return [
        Answer(
            row, at, corpus.families.index(nest.family) % 4, seed, (Relative(share, share, share),), True,
            spearman,
        )
        for at, (nest, share) in enumerate(zip(corpus.nests, shares, strict=True))
    ]  # fmt: skip
