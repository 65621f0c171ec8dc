"""A small world of TVM schedules: a corpus whose figures are made up, and a checkpoint made from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gnnperf.devices import describe_host
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.spaces import Space
from gnnperf.frontends.tvm.target import host_mcpu, host_target
from gnnperf.frontends.tvm.workloads import Workload
from gnnperf.schedules.traces.document import plain

MATMUL = Workload("matmul", {"m": 64, "n": 64, "k": 64})
SOFTMAX = Workload("softmax", {"m": 32, "n": 64})
HELD_OUT = Workload("matmul", {"m": 48, "n": 96, "k": 32}, "held_out")


def write_corpus(folder: Path, workloads: Sequence[Workload] = (MATMUL, SOFTMAX), count: int = 4) -> None:
    """Schedules sampled at random; the later one is said to be faster. The last of them has failed."""
    import_tvm()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "workloads.jsonl").open("w") as about, (folder / "schedules.jsonl").open("w") as lines:
        for workload in workloads:
            module = workload.build()
            about.write(json.dumps(_about(workload)) + "\n")
            candidates = Space(workload, module, host_target()).sample(count + 1, seed=1)
            for n, candidate in enumerate(candidates):
                line: dict[str, Any] = {"workload": workload.name, "n": n, "origin": "random", "status": "ok"}
                line["trace"] = plain(candidate.sch.trace.as_json())
                line |= {"samples_s": [1e-3 / (n + 1)] * 3} if n < count else {"status": "wrong_result"}
                lines.write(json.dumps(line) + "\n")


def write_checkpoint(folder: Path, workloads: Sequence[Workload] = (MATMUL, SOFTMAX)) -> None:
    """A bundle for tensor programs: a cost model that has learned nothing, and a store."""
    import torch

    from gnnperf.nn import Bundle, load_checkpoint, save_checkpoint
    from gnnperf.nn.traces import CostModel, CostModelConfig, TensorBundle
    from gnnperf.retrieval.tensor import fill_store
    from gnnperf.shipped import shipped_bundle
    from gnnperf.store import Store

    corpus = folder.with_name(f"{folder.name}-corpus")  # a checkpoint is written into an empty folder
    write_corpus(corpus, workloads)
    bundle = load_checkpoint(shipped_bundle(), Bundle)
    torch.manual_seed(0)
    save_checkpoint(
        folder,
        TensorBundle([CostModel(CostModelConfig())]),
        lambda store: fill_store(corpus, bundle, Store.open(store, create=True)),
    )
    corpus.rename(folder / "corpus")


def _about(workload: Workload) -> dict[str, Any]:
    host = describe_host()
    return {
        "workload": workload.name,
        "kind": workload.kind,
        "params": dict(workload.params),
        "split": workload.split,
        "baseline": "tvm-default",
        "baseline_samples_s": [2e-3] * 3,
        "target": {"kind": "llvm", "mcpu": host_mcpu(), "num-cores": 2},
        "threads": 2,
        "device": host.fingerprint,
        "machine": host.name,
        "tvm": "0.27",
        "llvm": 22,
        "collected": "2026-01-01",
    }
