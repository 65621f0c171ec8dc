"""Collect the corpus of TVM schedules on this machine: MetaSchedule's search, every schedule verified.

python scripts/collect_tensor.py -c configs/corpus/tensor.yaml -o runs/corpora/tensor
python scripts/collect_tensor.py -c configs/corpus/tensor.yaml -o runs/corpora/tensor --only softmax
python scripts/collect_tensor.py -c configs/corpus/tensor.yaml -o runs/corpora/tensor --seal

The log is append-only: stop it at any time and start it again, it goes on. `--seal` compresses what there is
and measures nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from _job import REPO, say

from gnnperf.corpus.collect_traces import TensorCollector
from gnnperf.corpus.trace_config import TensorConfig
from gnnperf.corpus.trace_log import TensorLog
from gnnperf.errors import GnnperfError


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "-c", "--config", type=Path, default=REPO / "configs/corpus/tensor.yaml", metavar="FILE"
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help="folder of the corpus"
    )
    parser.add_argument("--trials", type=int, metavar="N", help="schedules per workload (default: last pass)")
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="a workload or a kind; may be repeated"
    )
    parser.add_argument("--processes", type=int, default=2, help="searches at a time (default 2)")
    parser.add_argument("--seal", action="store_true", help="compress the log and measure nothing")
    arguments = parser.parse_args()
    try:
        return _collect(arguments)
    except GnnperfError as error:
        say(f"collect_tensor.py: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        say(f"interrupted; what was measured is kept in {arguments.output}; run the same command to go on")
        return 130


def _collect(arguments: argparse.Namespace) -> int:
    config = TensorConfig.load(arguments.config)
    if arguments.only:
        config = config.only(arguments.only)
    if arguments.trials is not None:
        config = config.up_to(arguments.trials)
    log = TensorLog(arguments.output)
    try:
        if arguments.seal:
            log.seal()
        else:
            TensorCollector(config, log, processes=arguments.processes, report=say).run()
    finally:
        log.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
