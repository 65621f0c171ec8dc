"""The data card of a corpus of TVM schedules: what was measured, how, on what, and how noisy it is.

python scripts/tensor_card.py            prints the card of checkpoints/corpus/tensor
python scripts/tensor_card.py --write    writes it to README.md in that folder

It holds only what is in the corpus: the same corpus gives the same card.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from _job import say

from gnnperf.corpus.lines import read_lines
from gnnperf.errors import GnnperfError
from gnnperf.shipped import shipped

METHOD = """
`scripts/collect_tensor.py` searched each workload with MetaSchedule: a quarter of its schedules were drawn
at random, the others found by the evolutionary search with its XGBoost cost model, in passes over all
workloads. Each schedule was built and run in processes of its own, with limits of time. Its result was
compared with that of the unscheduled function on the same random inputs (integers exactly), and only what
agreed was timed: after a warm-up, three samples of at least 10 ms; what was over three times slower than
the best so far was run once (`once`). Only one process at a time timed anything, before all others on the
machine, where other work went on meanwhile. Whatever failed is kept with its status. The baseline `tvm-
default` is the unscheduled function, which is what TVM's default pipeline runs on a CPU.
"""
FILES = """
| file | one line is |
|---|---|
| `workloads.jsonl.zst` | a workload: parameters, split, hash, operations, baseline, machine, versions |
| `schedules.jsonl.zst` | a schedule: status, samples in seconds, drawn or found, trace and decisions |
| `done.jsonl.zst` | what a pass over a workload took, and which have no further schedules |
"""


def card(folder: Path) -> str:
    """The card of a corpus as Markdown. Raises GnnperfError where it is damaged or empty."""
    workloads = {line["workload"]: line for _, line in read_lines(folder, "workloads")}
    schedules = [line for _, line in read_lines(folder, "schedules")]
    if not schedules:
        raise GnnperfError(f"expected a corpus of TVM schedules in {folder}, got nothing; collect one first")
    statuses = Counter(line["status"] for line in schedules)
    splits = Counter(line["split"] for line in workloads.values())
    one = next(iter(workloads.values()))
    lines = [
        "# Data card: TVM schedules on a CPU",
        "",
        f"{len(schedules):,} schedules of {len(workloads)} workloads of "
        f"{len({w['kind'] for w in workloads.values()})} operator kinds: "
        + ", ".join(f"{count:,} {status}" for status, count in statuses.most_common()) + ".",
        f"{splits['training']} workloads may be learned from; {splits['held_out']} are held out, none "
        "of them within 10 % of another in all sizes.",
        "",
        "## Measured",
        METHOD.strip(),
        "",
        "## Machine",
        f"{one['machine']}, {one['threads']} threads, target `{one['target']['mcpu']}`, fingerprint "
        f"`{one['device']}`; TVM {one['tvm']}, LLVM {one['llvm']}; "
        f"from {min(w['collected'] for w in workloads.values())} on.",
        "",
        "## Noise",
        _noise(schedules),
        "",
        "## Kinds",
        *_kinds(workloads, schedules),
        "",
        "## Files",
        FILES.strip(),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _noise(schedules: Sequence[Mapping[str, Any]]) -> str:
    samples = [
        line["samples_s"] for line in schedules if line["status"] == "ok" and len(line["samples_s"]) > 2
    ]
    spreads = sorted((max(s) - min(s)) / statistics.median(s) for s in samples)
    middle, high = (spreads[int(q * (len(spreads) - 1))] for q in (0.5, 0.95))
    return (
        f"(Largest - smallest) / median of the samples of one schedule: {middle:.1%} in the median, "
        f"{high:.0%} at the 95th percentile of {len(spreads):,} schedules. "
        "It knows nothing of the drift between processes."
    )


def _kinds(
    workloads: Mapping[str, Mapping[str, Any]], schedules: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Workloads, schedules, and how much faster than the baseline the best are, by kind."""
    best: dict[str, float] = {}
    for line in schedules:
        if line["status"] == "ok":
            found = statistics.median(line["samples_s"])
            best[line["workload"]] = min(found, best.get(line["workload"], found))
    counts = Counter(workloads[line["workload"]]["kind"] for line in schedules)
    yield "| kind | workloads | schedules | best over tvm-default, geometric mean |"
    yield "|---|--:|--:|--:|"
    for kind in sorted(counts):
        names = [n for n, w in workloads.items() if w["kind"] == kind and n in best]
        gains = [statistics.median(workloads[n]["baseline_samples_s"]) / best[n] for n in names]
        yield f"| {kind} | {len(names)} | {counts[kind]:,} | {statistics.geometric_mean(gains):.1f}x |"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default=shipped("checkpoints/corpus/tensor"))
    parser.add_argument("--write", action="store_true", help="into README.md of the folder")
    arguments = parser.parse_args()
    try:
        text = card(arguments.folder)
    except GnnperfError as error:
        say(f"{Path(sys.argv[0]).name}: {error}")
        return error.exit_code
    if arguments.write:
        (arguments.folder / "README.md").write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
