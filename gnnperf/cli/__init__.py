"""The command line: one file per verb, read by `gnnperf.cli.main`. Nothing here is for importing.

Modules in this package import only click, the standard library and `gnnperf.errors` at the top, so
that every `--help` answers at once; what a verb works with is imported inside its function.
"""

from __future__ import annotations

__all__: list[str] = []
