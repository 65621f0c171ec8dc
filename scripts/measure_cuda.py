"""Schedules for NVIDIA GPUs: built where there is none, measured where there is one.

python scripts/measure_cuda.py pack -c configs/corpus/cuda.yaml --arch sm_90a -o PACK
python PACK/program/measure_cuda.py measure PACK -o LOG
python scripts/collect_tensor.py -o LOG --seal

`pack` samples schedules of every workload, builds them, and writes a folder that holds all that `measure`
takes but Python with numpy, PyYAML and apache-tvm-ffi (in the version of PACK/pack.json). `measure` verifies
and times every schedule on the first GPU and writes a corpus of TVM schedules. Both go on where they were
stopped.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gnnperf.errors import GnnperfError, InputError

CONFIG = Path(__file__).parents[1] / "configs/corpus/cuda.yaml"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    pack = verbs.add_parser("pack", help="sample and build schedules; needs no GPU")
    pack.add_argument("-c", "--config", type=Path, default=CONFIG, metavar="FILE")
    pack.add_argument("-o", "--output", type=Path, required=True, metavar="PACK", help="folder of the pack")
    pack.add_argument(
        "--arch", default="h100", metavar="NAME", help="a GPU of the catalog, or sm_80, sm_90a, ... (h100)"
    )
    pack.add_argument("--only", action="append", metavar="NAME", help="a workload or a kind; may be repeated")
    pack.add_argument("--processes", type=int, default=1, help="workloads at a time (default 1)")
    pack.set_defaults(work=_pack)
    measure = verbs.add_parser("measure", help="verify and time the schedules of a pack on the first GPU")
    measure.add_argument("pack", type=Path, metavar="PACK", help="the folder that `pack` wrote")
    measure.add_argument(
        "-o", "--output", type=Path, required=True, metavar="LOG", help="folder of the corpus"
    )
    measure.set_defaults(work=_measure)
    arguments = parser.parse_args()
    try:
        arguments.work(arguments)
    except GnnperfError as error:
        say(f"measure_cuda.py: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        say(f"interrupted; what is done is kept in {arguments.output}; run the same command to go on")
        return 130
    return 0


def _pack(arguments: argparse.Namespace) -> None:
    from gnnperf.corpus.collect_traces import prepare
    from gnnperf.corpus.remote import PackConfig, PackWriter
    from gnnperf.corpus.remote.build import has_nvcc
    from gnnperf.frontends.tvm.target import cuda_target

    config = PackConfig.load(arguments.config)
    if arguments.only:
        config = config.only(arguments.only)
    prepare()
    target = cuda_target(arguments.arch)
    if not has_nvcc():
        say("no nvcc here: the pack gets CUDA source, which nvcc must compile where it is measured")
    PackWriter(arguments.output, config, target, arguments.processes, say).run()


def _measure(arguments: argparse.Namespace) -> None:
    from gnnperf.devices import find_gpus
    from gnnperf.measure.remote import LineLog, Pack, measure_pack
    from gnnperf.measure.remote.measuring import LOG_FILES, machine_of

    pack = Pack.read(arguments.pack)
    gpus, why = find_gpus()
    if not gpus:
        raise InputError(
            f"expected an NVIDIA GPU, got none: {why}; measure {arguments.pack} where there is one"
        )
    machine = machine_of(gpus[0], pack.arch)
    log = LineLog(arguments.output, LOG_FILES)
    try:
        measure_pack(pack, log, "cuda", machine, report=say)
    finally:
        log.close()


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
