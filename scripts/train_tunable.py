"""Train the released networks for tunable kernels on all that was measured.

python scripts/train_tunable.py --data DIR --evaluation gpu-schedules.json -o checkpoints/tunable-kernels

Intervals and figures come from the evaluation, where what was predicted had been held out:
gnnperf eval gpu-schedules -o DIR writes it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from gnnperf.errors import GnnperfError
from gnnperf.frontends.gpu_kernels.tables import data_path, load_tables
from gnnperf.nn import Provenance, save_checkpoint
from gnnperf.nn.demand import ANY, LEVELS, Demand, DemandBundle, measured_files
from gnnperf.training.demand import fit_demand


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="tunable_kernels.parquet or its folder (or $GNNPERF_DATA)")
    parser.add_argument("--evaluation", type=Path, required=True, metavar="JSON")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    arguments = parser.parse_args()
    try:
        train(arguments.data, arguments.evaluation, arguments.seeds, arguments.output)
    except GnnperfError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def train(data: Path | None, evaluation: Path, seeds: int, output: Path) -> None:
    """Fit, and write the bundle."""
    path = data_path(data)
    tables = load_tables(path)
    networks: dict[str, list[Demand]] = {}
    for kernel in (*dict.fromkeys(t.kernel for t in tables), ANY):
        mine = tables if kernel == ANY else [t for t in tables if t.kernel == kernel]
        networks[kernel] = [fit_demand(mine, own=kernel != ANY, seed=seed) for seed in range(seeds)]
        print(f"trained: {kernel}", file=sys.stderr)
    document = json.loads(evaluation.read_text(encoding="utf-8"))
    widths, adapted = (half_widths(document["rows"], error) for error in ("error", "adapted_error"))
    rows = sum(len(table) for table in tables)
    corpus = {"file": path.name, "rows": rows, "tables": len(tables)}
    provenance = Provenance(corpus, document["figures"], range(seeds))
    save_checkpoint(output, DemandBundle(networks, widths, adapted, provenance, measured_files(tables)))


def half_widths(rows: list[dict[str, object]], error: str) -> dict[str, dict[str, float]]:
    """By kernel, mean over its tables of held-out GPUs of the quantiles of |log2(measured / predicted)|;
    of ANY, over all tables of held-out kernels. error: begins the names of their columns."""
    groups: defaultdict[str, list[dict[str, float]]] = defaultdict(list)
    for row in rows:
        if row["held_out"] != "gpu and kernel":
            groups[ANY if row["held_out"] == "kernel" else str(row["kernel"])].append(row)  # type: ignore[arg-type]
    return {
        name: {level: float(np.mean([row[f"{error}_{level}"] for row in group])) for level in LEVELS}
        for name, group in groups.items()
    }


if __name__ == "__main__":
    sys.exit(main())
