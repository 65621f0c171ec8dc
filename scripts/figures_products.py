"""Products that are retrieved cold: of floats, in wall time and GFLOP/s, and of bytes, by tensor instruction.

python scripts/figures_products.py            (minutes; nothing else may run on the machine)
python scripts/figures_products.py --only float --json

float  `gnnperf retrieve` of a product 512^3 as a process, from nothing to the report, beside PyTorch
bytes  a product of uint8 and int8 that the corpus does not hold: the first schedules of retrieval beside the
       best that MetaSchedule finds without the tensor instruction (AVX-512 VNNI)
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from _job import machine, retrieve, run_job, say

from gnnperf.cli.output import Report
from gnnperf.errors import InputError

SIZE = 512
FLOAT = f"""
from tvm import te

def product():
    a, b = (te.placeholder(({SIZE}, {SIZE}), name=name) for name in "ab")
    k = te.reduce_axis((0, {SIZE}), name="k")
    return [a, b, te.compute(({SIZE}, {SIZE}), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")]
"""
BYTES = {"m": 320, "n": 640, "k": 640}
PARTS = ("float", "bytes")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exit code 1: a result was not verified, or the first pick takes no tensor instruction.",
    )  # fmt: skip
    parser.add_argument("-k", "--candidates", type=int, default=5, help="measured (default 5)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--trials", type=int, default=64, help="of the search without the instruction")
    return run_job(work, parser.parse_args())


def work(arguments: argparse.Namespace) -> tuple[Report, bool]:
    """Measure the parts that are asked for."""
    parts = {"float": of_floats, "bytes": of_bytes}
    results = [parts[name](arguments) for name in PARTS if arguments.only in (None, name)]
    document = {"machine": machine(), "candidates": arguments.candidates, "results": results}
    text = "\n".join(
        f"{result['part']:6} {name:28} {value}" for result in results for name, value in _shown(result)
    )
    return Report(document, text), all(result["good"] for result in results)


def of_floats(arguments: argparse.Namespace) -> dict[str, Any]:
    """A product 512^3 in single precision."""
    say("float: retrieving")
    with tempfile.TemporaryDirectory(prefix="gnnperf-product-") as folder:
        source = Path(folder) / "product.py"
        source.write_text(FLOAT)
        k = arguments.candidates
        cold = retrieve(f"{source}:product", {}, None, k)
        compared = retrieve(f"{source}:product", {}, None, k, ["--beside", "torch"])
    if cold.document is None or compared.document is None:
        raise InputError(f"the product was not retrieved: {cold.error or compared.error}")
    (nest,) = compared.document["nests"]
    runtime_s = cold.document["tuned"]["runtime_s"]
    return {
        "part": "float",
        "good": bool(cold.document["verified"]),
        "wall_s": cold.wall_s,
        "runtime_s": runtime_s,
        "gflop_per_s": 2 * SIZE**3 / runtime_s / 1e9,
        "speedup_over_default": cold.document["speedup"],
        "speedup_over_torch": nest["beside"][0]["speedup"],
    }


def of_bytes(arguments: argparse.Namespace) -> dict[str, Any]:
    """A product of bytes with packed weights, which the instruction takes."""
    from gnnperf.backends.tvm.server import BenchServer
    from gnnperf.corpus.collect_traces import prepare
    from gnnperf.frontends.tvm.target import has_vnni, host_target, set_runtime_threads
    from gnnperf.frontends.tvm.workloads import Workload

    if not has_vnni():
        raise InputError("--only bytes: expected a CPU with AVX-512 VNNI; this one lacks it")
    set_runtime_threads()
    prepare()
    workload, target = Workload("matmul_int8", BYTES), host_target()
    with BenchServer([workload.build()], target) as server:
        tried = retrieved(server, workload, target, arguments.candidates)
        say(f"bytes: searching without the instruction, {arguments.trials} trials")
        plain = searched(server, workload, target, arguments.trials)
        return compared_bytes(server, tried, plain)


def retrieved(server: Any, workload: Any, target: Any, k: int) -> list[Any]:
    """(candidate, outcome) of the first k."""
    from gnnperf.devices import describe_host
    from gnnperf.frontends.tvm import TvmTask
    from gnnperf.nn import Bundle, load_checkpoint
    from gnnperf.nn.traces import TensorBundle
    from gnnperf.retrieval.tensor import TaskQuery, TensorOptions, TensorTransfer
    from gnnperf.shipped import shipped_bundle, shipped_tensor_bundle
    from gnnperf.store import Store

    checkpoint, task = shipped_tensor_bundle(), TvmTask(workload.name, workload.build())
    query = TaskQuery(task, 0)
    transfer = TensorTransfer(
        task.name, [task], target, load_checkpoint(shipped_bundle(), Bundle),
        load_checkpoint(checkpoint, TensorBundle),
        [Store.open(checkpoint / "store")], describe_host(), None,
        TensorOptions(k=k, exclude=frozenset({task.graph.digest})),
    )  # fmt: skip
    transfer.ask([query])
    return transfer.try_first(query, server)


def searched(server: Any, workload: Any, target: Any, trials: int) -> list[Any]:
    """MetaSchedule's trials with its own rules, which know no tensor instruction."""
    from gnnperf.evaluation.tensor.search import metaschedule
    from gnnperf.frontends.tvm.spaces import plain_generator

    measure = partial(server.measure, 0)
    return metaschedule(None, workload.build(), target, trials, measure, generator=plain_generator())


def compared_bytes(server: Any, tried: list[Any], plain: list[Any]) -> dict[str, Any]:
    """The best of both, in turn."""
    from gnnperf.evaluation.tensor.search import best_of
    from gnnperf.measure.interleaved import Pace, in_turns
    from gnnperf.schedules.traces.sketches import sketch_of

    right = [(outcome.runtime_s, n) for n, (_, outcome) in enumerate(tried) if outcome.runtime_s]
    without = best_of(plain)
    if not right or without is None:
        raise InputError("bytes: no schedule ran right, of retrieval or of the search")
    first, best = tried[0][0], tried[min(right)[1]][0]
    with server.rehearsed(0, [best.program, without.module]) as (_, turns):
        found = in_turns({"ours": turns[1], "plain": turns[2]}, Pace())
    ours_s, plain_s = found["ours"].runtime_s, found["plain"].runtime_s
    operations = 2 * BYTES["m"] * BYTES["n"] * BYTES["k"]
    instruction = sketch_of(first.document).instruction
    return {
        "part": "bytes",
        "good": instruction is not None,
        "first_pick": instruction or "no tensor instruction",
        "giga_operations_per_s": operations / ours_s / 1e9,
        "without_giga_operations_per_s": operations / plain_s / 1e9,
        "speedup_over_without": plain_s / ours_s,
    }


def _shown(result: dict[str, Any]) -> list[tuple[str, str]]:
    def words(value: Any) -> str:
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    return [(name, words(value)) for name, value in result.items() if name not in ("part", "good")]


if __name__ == "__main__":
    sys.exit(main())
