"""From a template to a page: self-contained, escaped, and allowed to load or run nothing."""

from __future__ import annotations

import base64
import functools
import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from gnnperf import __version__
from gnnperf.report import nest_picture, roofline, spans, words

if TYPE_CHECKING:
    from jinja2 import Environment

FILTERS = ("cell", "duration", "duration_interval", "label", "number", "percent", "rate", "times",
           "times_interval")  # fmt: skip
"""Functions of `words` that templates use."""


def render(template: str, title: str, **context: Any) -> str:
    """HTML of a template of `assets`. What it is given is text: names of kernels are user input."""
    environment = _environment()
    style = _asset("page.css")
    return environment.get_template(template).render(
        **context,
        title=title,
        style=style,
        # The policy allows this very style sheet and pictures within the page, and no script at all.
        policy=f"default-src 'none'; img-src data:; style-src '{_digest(style)}'",
        version=__version__,
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("gnnperf.report", "assets"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update({name: getattr(words, name) for name in FILTERS})
    environment.globals.update(
        missing=words.MISSING, spans=spans, roofline_box=roofline, moves=nest_picture.MOVES,
        loop_kinds=nest_picture.LOOP_KINDS,
    )  # fmt: skip
    return environment


def _asset(name: str) -> str:
    from importlib.resources import files

    return (files("gnnperf.report") / "assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
