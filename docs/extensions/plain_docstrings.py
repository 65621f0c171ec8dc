"""Docstrings of gnnperf are plain text; this makes of them the reStructuredText that Sphinx reads.

Stars, bars and trailing underscores are meant as they stand, single backticks hold code, an indented
paragraph is code, and lines that begin with `name:`, where that is a field or an argument, are a list.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator
from typing import Any

from sphinx.application import Sphinx

CODE = re.compile(r"(\w?)`+([^`]+)`+(\w?)")
MARKUP = re.compile(r"[*|]|(?<=\w)_(?!\w)")
ITEM = re.compile(r"(?:^|(?<=[.;:)] ))(\w+(?:, \w+)*): ")
SECTIONS = ("Args:", "Returns:", "Raises:", "Yields:", "References:", "Relations:")
"""Headings whose indented text is no code; napoleon reads them."""
VALUES = ("property", "attribute", "data")
"""What napoleon would take a type from, up to the first colon."""


def plain(lines: list[str], names: Collection[str] = ()) -> list[str]:
    """The same text as reStructuredText. names: fields or arguments of what is described."""
    result: list[str] = []
    section = False
    for paragraph in paragraphs(lines):
        if not paragraph[0].startswith(" "):
            section = paragraph[0] in SECTIONS
            text = paragraph if section else listed([line.strip() for line in paragraph], names)
            result += [*escape("\n".join(text)).split("\n"), ""]
        elif section:
            result += [*escape("\n".join(paragraph)).split("\n"), ""]
        else:
            result += ["::", "", *paragraph, ""]
    return result


def paragraphs(lines: list[str]) -> Iterator[list[str]]:
    """Runs of lines between blank ones. What is indented after `Example:` is a paragraph of its own, and
    indented ones that follow one another are one."""
    paragraph: list[str] = []
    for line in lines:
        if paragraph:
            code = paragraph[0].startswith(" ")
            closed = paragraph[-1] == "Example:" or (not line.strip() and not code)
            if closed or (code and line.strip() and not line.startswith(" ")):
                yield paragraph
                paragraph = []
        if line.strip() or paragraph:
            paragraph.append(line.rstrip())
    if paragraph:
        yield paragraph


def listed(lines: list[str], names: Collection[str]) -> list[str]:
    """Sentences that begin with one of `names` and a colon as items, after what is before the first."""
    text = " ".join(lines)
    starts = [found for found in ITEM.finditer(text) if set(found[1].split(", ")) <= set(names)]
    if not starts:
        return lines
    ends = [found.start() for found in starts[1:]] + [len(text)]
    items = [text[: starts[0].start()].strip(), ""]
    for found, end in zip(starts, ends, strict=True):
        items.append(f"* `{found[1].replace(', ', '`, `')}`: {text[found.end() : end].strip()}")
    return items


def escape(text: str) -> str:
    """`text` with code as literals, and with what would be taken for other markup escaped."""
    parts, end = [], 0
    for span in CODE.finditer(text):
        parts.append(_escape_markup(text[end : span.start()]))
        before, code, after = span.groups()
        parts.append((before and rf"{before}\ ") + f"``{code}``" + (after and rf"\ {after}"))
        end = span.end()
    return "".join((*parts, _escape_markup(text[end:])))


def _escape_markup(text: str) -> str:
    bullet = "* " if text.startswith("* ") else ""
    return bullet + MARKUP.sub(r"\\\g<0>", text.removeprefix(bullet)).replace("\n\\* ", "\n* ")


def _names_of(value: Any) -> set[str]:
    names = set(getattr(value, "__annotations__", ()))
    try:
        return names | set(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return names


_kept: dict[str, list[str]] = {}


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = plain(lines, _names_of(obj))
    if what in VALUES:
        _kept[name] = list(lines)
        lines.clear()


def restore(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if what in VALUES:
        lines[:] = _kept.pop(name)


def sign(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """The default of a field that is made anew has no form that Sphinx can read."""
    return signature and signature.replace("<factory>", "..."), returns


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", restore, priority=600)  # after it
    app.connect("autodoc-process-signature", sign)
    return {"parallel_read_safe": True}
