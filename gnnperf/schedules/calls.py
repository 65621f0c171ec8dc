"""Schedules that are calls of a vendor's library in place of a function's products and convolutions."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from gnnperf.documents import from_json
from gnnperf.errors import InputError

SHARES = {
    "b": "matrices", "m": "rows", "n": "columns or pictures", "s": "rows of pictures",
}  # fmt: skip
"""What threads share out among them."""
LIBRARY_NAMES = ("onednn", "openblas")


@dataclass(frozen=True)
class LibraryCall:
    """Every product and convolution by a library, a part of it on each thread. shares: see `SHARES`."""

    kind: ClassVar[str] = "call"

    library: str
    shares: str

    @property
    def key(self) -> str:
        """Equal calls have equal keys."""
        return self.to_json()

    def to_json(self) -> str:
        """One line; `from_json` restores an equal call."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> LibraryCall:
        """Raises InputError where the text is no such call."""
        try:
            fields = from_json(text)
        except ValueError as error:
            raise InputError(f"expected a call of a library as JSON: {error}") from None
        if not isinstance(fields, dict) or set(fields) != {"library", "shares"}:
            raise InputError("expected a call of a library, an object with library and shares")
        if fields["library"] not in LIBRARY_NAMES or fields["shares"] not in SHARES:
            raise InputError(
                f"expected a library among {', '.join(LIBRARY_NAMES)} and shares among {', '.join(SHARES)}"
            )
        return LibraryCall(fields["library"], fields["shares"])

    def to_dict(self) -> dict[str, Any]:
        """As it stands in reports."""
        return {"kind": self.kind, **asdict(self)}

    def describe(self) -> str:
        """In words."""
        return f"calls {self.library}, threads share {SHARES[self.shares]}"
