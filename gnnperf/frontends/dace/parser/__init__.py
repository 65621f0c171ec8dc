"""DaCe 1.0's parser of Python programs, with what it misreads or refuses mended: programs mean what Python
makes of them."""

from gnnperf.frontends.dace.parser import (  # noqa: F401  # register them
    numpy_counts,
    numpy_formulas,
    numpy_fourier,
    numpy_functions,
    numpy_places,
    numpy_searches,
    numpy_sorting,
)
from gnnperf.frontends.dace.parser.repairs import divided_as_in_slices, mend, repaired_parser

__all__ = ["divided_as_in_slices", "mend", "repaired_parser"]
