"""The kernels that the corpus does not hold, beside Numba (parallel, fastmath): all in turn, in one run.

python scripts/unseen_numba.py                (about twenty minutes; nothing else may run on the machine)
python scripts/unseen_numba.py --kernel sddmm --kernel mttkrp -k 3

Every kernel of tests/e2e/kernels/unseen.py is tuned as `gnnperf retrieve --no-store` does. What it gives,
DaCe's `auto_optimize` and the function of the same name in unseen_numba.py are verified and timed side by
side, as in the case studies. Numba is an optional extra: pip install 'gnnperf[numba]'.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from _job import REPO, job_parser, run_job

from gnnperf.cli.eval.cases import run_suite
from gnnperf.cli.output import Report
from gnnperf.evaluation.cases import Suite

UNSEEN = Suite("unseen", ("numba",), REPO / "tests" / "e2e" / "kernels")


def measure(options: argparse.Namespace) -> tuple[Report, bool]:
    kernels = tuple(options.kernel or ())
    report = run_suite(UNSEEN, kernels, options.quick, options.candidates, options.output, options.checkpoint)
    return report, report.failure is None


def main() -> int:
    parser = job_parser(__doc__, "a kernel or its competitor is wrong or failed")
    parser.add_argument("--kernel", action="append", metavar="NAME", help="this kernel; may be repeated")
    parser.add_argument(
        "--quick", action="store_true", help="timed briefly; the first three kernels, if --kernel names none"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR",
        help="plot, document and rows; what is there already is not measured again",
    )  # fmt: skip
    parser.set_defaults(candidates=5)
    return run_job(measure, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
