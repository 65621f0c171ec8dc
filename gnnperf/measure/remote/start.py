"""Measuring a pack on the first GPU of this machine: for `gnnperf measure run`, and for the pack itself."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from gnnperf.devices import find_gpus
from gnnperf.errors import GnnperfError, MeasureError
from gnnperf.measure.record_log import RecordLog
from gnnperf.measure.remote.measuring import machine_of, measure_pack
from gnnperf.measure.remote.pack import Pack


def run_pack(folder: Path, output: Path, report: Callable[[str], None]) -> RecordLog:
    """Verify and time the schedules of a pack; those that the log in `output` has are not measured again.

    Returns the log, which is closed. Raises InputError: not a pack, or for another GPU; MeasureError where
    there is no GPU; CorpusError where the log cannot be written.
    """
    pack = Pack.read(folder)
    gpus, why = find_gpus()
    if not gpus:
        raise MeasureError(f"expected an NVIDIA GPU, got none: {why}; measure {folder} where there is one")
    machine = machine_of(gpus[0], pack.arch)
    log = RecordLog(output)
    try:
        measure_pack(pack, log, "cuda", machine, report=report)
    finally:
        log.close()
    return log


def main() -> None:
    """The command that travels in a pack: `python PACK/program/measure.py -o LOG`."""
    script = Path(sys.argv[0])
    parser = argparse.ArgumentParser(
        description="Verify and time the schedules of this pack on the first GPU."
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="LOG", help="folder of the corpus"
    )
    output = parser.parse_args().output
    try:
        run_pack(script.resolve().parents[1], output, lambda text: print(text, file=sys.stderr, flush=True))
    except GnnperfError as error:
        sys.exit(_fail(f"{script.name}: {error}", error.exit_code))
    except KeyboardInterrupt:
        said = f"interrupted; what is done is kept in {output}; run the same command to go on"
        sys.exit(_fail(said, 130))


def _fail(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code
