"""What makes a program fast: recipes of loop nests, traces of TVM functions, calls of libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

__all__ = ["Schedule"]


class Schedule(Protocol):
    """An ordered list of transformations with parameters, in whatever form: a `Recipe`, a `TraceDocument`, a
    `LibraryCall`.

    kind: of the form, "recipe", "trace" or "call". key: equal for equal schedules.
    """

    @property
    def kind(self) -> str: ...
    @property
    def key(self) -> str: ...

    def to_json(self) -> str:
        """One line, as the records of a store keep it."""

    def to_dict(self) -> Mapping[str, Any]:
        """As it stands in reports, with its kind."""

    def describe(self) -> str:
        """In words, for people."""
