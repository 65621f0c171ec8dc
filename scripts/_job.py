"""What the reproducible jobs share."""

from __future__ import annotations

from pathlib import Path

import click

REPO = Path(__file__).parents[1]


def say(text: str) -> None:
    """Progress, on standard error."""
    click.echo(text, err=True)
