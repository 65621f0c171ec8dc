"""Fill the schedule store of a bundle for tensor programs from a corpus of TVM schedules.

python scripts/fill_tensor_store.py runs/corpora/tensor -o checkpoints/tensor-programs

Of every workload that models may learn from, the best traces with what they measured; the unscheduled graphs
are embedded by the encoder for loop nests. What the store held before is replaced.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from _job import REPO, say

from gnnperf.errors import GnnperfError
from gnnperf.shipped import shipped_bundle


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path, metavar="CORPUS", help="folder made by collect_tensor.py")
    default = REPO / "checkpoints/tensor-programs"
    parser.add_argument("-o", "--output", type=Path, default=default, metavar="DIR", help="the bundle")
    parser.add_argument("--encoder", type=Path, default=shipped_bundle(), metavar="DIR", help="its bundle")
    parser.add_argument("--best", type=int, default=8, metavar="N", help="traces of a workload (default 8)")
    try:
        return _fill(parser.parse_args())
    except GnnperfError as error:
        say(f"fill_tensor_store.py: {error}")
        return error.exit_code


def _fill(arguments: argparse.Namespace) -> int:
    from gnnperf.nn import Bundle, load_checkpoint
    from gnnperf.retrieval.tensor import fill_store
    from gnnperf.store import Store

    bundle = load_checkpoint(arguments.encoder, Bundle)
    new, place = arguments.output / "store.new", arguments.output / "store"
    shutil.rmtree(new, ignore_errors=True)
    try:
        store = Store.open(new, create=True)
        records = fill_store(arguments.corpus, bundle, store, arguments.best)
        workloads = store.info().nests
        shutil.rmtree(place, ignore_errors=True)
        new.replace(place)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    say(f"{place}: {workloads} workloads, {records} traces")
    return 0


if __name__ == "__main__":
    sys.exit(main())
