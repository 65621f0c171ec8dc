"""`gnnperf corpus`: look after corpora of measurements."""

from __future__ import annotations

from pathlib import Path

import click

from gnnperf.cli.options import FILE, FOLDER
from gnnperf.cli.output import Report, Verb


@click.group()
def corpus() -> None:
    """Look after corpora that `gnnperf collect` measured: card."""


@corpus.command(cls=Verb)
@click.argument("folder", metavar="FOLDER", type=FOLDER)
@click.option(
    "--model", metavar="FILE", type=FILE,
    help="Configuration of a model: which families it holds out, where the corpus does not say.",
)  # fmt: skip
@click.option("--write", is_flag=True, help="Write it to README.md in FOLDER.")
def card(folder: Path, model: Path | None, write: bool) -> Report:
    """Print the data card of a corpus: what was measured, how, on what, and how noisy it is.

    It holds only what is in the corpus and in the configuration: the same corpus gives the same card.
    """
    from rich.text import Text

    from gnnperf.corpus.card import card_of, numbers_of
    from gnnperf.corpus.reader import read_corpus

    numbers = numbers_of(read_corpus(folder), model)
    text = card_of(folder.resolve().name, numbers)
    if write:
        (folder / "README.md").write_text(text, encoding="utf-8")
        return Report(numbers, Text(f"wrote {folder / 'README.md'}"))
    return Report(numbers, Text(text))
