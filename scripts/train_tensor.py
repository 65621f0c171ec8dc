"""Train the released cost model of tensor programs on measured TVM schedules.

python scripts/train_tensor.py -o checkpoints/tensor-programs [--corpus DIR] [--evaluation ranking.json]

Held-out workloads are left out: the figures in its metadata say how it ranks their schedules. What it would
know of operator kinds that were held out comes from the evaluation:
gnnperf eval tensor-ranking --json > ranking.json writes it.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from gnnperf.errors import GnnperfError, InputError
from gnnperf.shipped import shipped


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, default=shipped("checkpoints/corpus/tensor"), metavar="DIR")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="of features; ~/.cache/gnnperf/tensor")
    parser.add_argument("--evaluation", type=Path, metavar="JSON", help="of gnnperf eval tensor-ranking")
    parser.add_argument("--seeds", type=int, default=1, help="models to average")
    parser.add_argument("--quick", action="store_true", help="train briefly: a first look")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    try:
        train(arguments)
    except GnnperfError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def train(arguments: argparse.Namespace) -> None:
    """Fit, and write the bundle."""
    from gnnperf.evaluation.trace_ranking.scores import rank_pool, summary
    from gnnperf.nn import save_checkpoint
    from gnnperf.training.traces.bundle import fit_bundle
    from gnnperf.training.traces.corpus import HELD_OUT, load_tensor_corpus
    from gnnperf.training.traces.data import pools_of
    from gnnperf.training.traces.features import corpus_features, default_cache
    from gnnperf.training.traces.fit import DEFAULT_FIT, QUICK_FIT

    evaluation = read_evaluation(arguments.evaluation) if arguments.evaluation else {}
    corpus = load_tensor_corpus(arguments.corpus)
    pools = pools_of(corpus, corpus_features(corpus, arguments.cache or default_cache()))
    known = [pool for pool in pools if pool.workload.split != HELD_OUT]
    asked = [pool for pool in pools if pool.workload.split == HELD_OUT]
    settings = QUICK_FIT if arguments.quick else DEFAULT_FIT
    bundle = fit_bundle(corpus, known, settings, range(arguments.seeds))
    about = {"held_out_workloads": len(asked), "evaluated_on": evaluation.get("settings", {})}
    rankings = [rank_pool(pool, bundle.score_encoded(pool.graphs).astype(float)) for pool in asked]
    figures = {**evaluation.get("figures", {}), **(summary(rankings) if rankings else {})}
    provenance = replace(bundle.provenance, corpus={**bundle.provenance.corpus, **about}, figures=figures)
    save_checkpoint(arguments.output, replace(bundle, provenance=provenance))
    print("".join(f"{name}: {value:.3f}\n" for name, value in figures.items()), end="")


def read_evaluation(path: Path) -> dict[str, Any]:
    """The document that the evaluation printed. Raises InputError."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    if not isinstance(document, dict) or document.get("benchmark") != "tensor-ranking":
        raise InputError(f"expected what `gnnperf eval tensor-ranking --json` printed, got {path}")
    return document


if __name__ == "__main__":
    sys.exit(main())
