"""`gnnperf corpus`: look after corpora of measurements."""

from __future__ import annotations

from pathlib import Path

import click

from gnnperf.cli.options import FILE, FOLDER, output_folder
from gnnperf.cli.output import Report, Verb

folder_argument = click.argument("folder", metavar="FOLDER", type=FOLDER)


@click.group()
def corpus() -> None:
    """Look after corpora that `gnnperf collect` measured: card, convert."""


@corpus.command(cls=Verb)
@folder_argument
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


@corpus.command(cls=Verb)
@folder_argument
@output_folder("Folder for the converted corpus.", metavar="NEW")
def convert(folder: Path, output: Path) -> Report:
    """Write a corpus of an older format anew, as the other verbs read it."""
    from gnnperf.cli.collect import log_report
    from gnnperf.corpus.convert import convert_corpus

    return log_report(convert_corpus(folder, output))
