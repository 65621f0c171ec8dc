"""How `gnnperf retrieve` and `gnnperf tune` end, for kernels of all frontends.

The answer is worth more than what is kept of it: what goes wrong in keeping is told beside the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnnperf.errors import GnnperfError, Interrupted

if TYPE_CHECKING:
    from gnnperf.graph import ProgramGraph
    from gnnperf.retrieval.measured import Memory
    from gnnperf.retrieval.report import Retrieval

Answer = tuple["Retrieval", "dict[str, ProgramGraph]", "GnnperfError | None"]
"""What is reported, graphs of the nests or tasks by digest, and what went wrong in writing files."""


def answer(
    result: Retrieval, graphs: dict[str, ProgramGraph], output: Path | None, write: Callable[[Path], None]
) -> Answer:
    """Write files into a folder, where one is given, and report."""
    if output is not None:
        try:
            write(output)
        except GnnperfError as error:
            return result, graphs, error
    return result, graphs, None


def notify(text: str) -> None:
    """Say something while the work goes on."""
    click.echo(f"gnnperf: {text}", err=True)


@contextmanager
def remembering() -> Iterator[None]:
    """What is done inside fails with no more than a word."""
    try:
        yield
    except GnnperfError as error:
        notify(f"nothing was remembered: {error}")


def interrupted(trials: int, memory: Memory | None) -> Interrupted:
    """Of a search after that many trials. memory: the store that has them."""
    kept = "nothing was kept (--no-store)"
    if memory is not None:
        kept = f"what was measured is kept in {memory.store.location}; run the same command to go on"
    return Interrupted(f"interrupted after {trials} trials; {kept}")
