"""Every error gnnperf raises on purpose.

GnnperfError            the work failed: one clear line, exit code 1
├── InputError          the user's input is wrong: expected, got, what to do; exit code 2
├── NotApplicable       a schedule does not fit a nest (a status, not a failure of the run)
├── UnsupportedConstruct  a part of a kernel has no translation (that nest is skipped, with the reason)
├── BuildError          a candidate or baseline did not compile
├── MeasureError        the measuring machinery itself failed (not a candidate)
│   └── TookTooLong     what was run did not end within its time
├── StoreError          the schedule store is corrupt, of another schema, or cannot be written
├── CorpusError         the corpus being collected is damaged, in use, or cannot be written
└── Interrupted         Ctrl-C; the line says what was kept; exit code 130
"""

from __future__ import annotations


class GnnperfError(Exception):
    """The work failed. `str(error)` is the one line a user sees."""

    exit_code = 1

    def __str__(self) -> str:
        return one_line(super().__str__())


class InputError(GnnperfError):
    """Bad input: say what was expected, what was got, and what to do."""

    exit_code = 2


class NotApplicable(GnnperfError):
    """A schedule does not fit a nest."""


class UnsupportedConstruct(GnnperfError):
    """A part of a kernel that the frontend cannot translate."""


class BuildError(GnnperfError):
    """Source that did not compile; carries the compiler's first error line."""


class MeasureError(GnnperfError):
    """The measuring machinery failed, as opposed to a candidate."""


class TookTooLong(MeasureError):
    """What was run did not end within its time."""


class StoreError(GnnperfError):
    """The schedule store cannot be read or written."""


class CorpusError(GnnperfError):
    """The corpus that is being collected cannot be read or written."""


class Interrupted(GnnperfError):
    """The user pressed Ctrl-C: say what was kept and how to go on."""

    exit_code = 130


LONGEST_LINE = 1_000
"""Characters of a message: what it tells of may be of any length."""


def one_line(text: str) -> str:
    """A text on one line of printed characters, of which a long one loses its middle."""
    line = "".join(c if c.isprintable() else "?" for c in " ".join(text.splitlines()))
    return line if len(line) <= LONGEST_LINE else f"{line[:600]} ... {line[-300:]}"


def quoted(value: object) -> str:
    """What strangers wrote, for a message: on one line, of which a long one loses its end."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def first_line(error: BaseException) -> str:
    """One line of an exception (those of compilers tend to be long)."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:300]


def last_line(error: BaseException) -> str:
    """The name of an exception and the end of its message, where TVM puts what went wrong."""
    return f"{type(error).__name__}: {str(error).strip().rpartition(chr(10))[2]}"[:300]
