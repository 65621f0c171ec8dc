"""A small world of TVM schedules: a corpus whose figures are made up, and a checkpoint made from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gnnperf.devices import describe_host
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.spaces import DesignSpace
from gnnperf.frontends.tvm.target import host_mcpu, host_target
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.schedules.traces.document import plain

MATMUL = TvmWorkload("matmul", {"m": 64, "n": 64, "k": 64})
SOFTMAX = TvmWorkload("softmax", {"m": 32, "n": 64})
HELD_OUT = TvmWorkload("matmul", {"m": 48, "n": 96, "k": 32}, "held_out")


def write_corpus(folder: Path, workloads: Sequence[TvmWorkload] = (MATMUL, SOFTMAX), count: int = 4) -> None:
    """Schedules sampled at random; the later one is said to be faster. The last of them has failed."""
    import_tvm()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "tasks.jsonl").open("w") as tasks, (folder / "records.jsonl").open("w") as records:
        for workload in workloads:
            module = workload.build()
            tasks.write(json.dumps(_about(workload)) + "\n")
            candidates = DesignSpace(module, host_target()).sample(count + 1, seed=1)
            for n, candidate in enumerate(candidates):
                line: dict[str, Any] = {"task": workload.name, "schedule_id": str(n), "origin": "random"}
                line["schedule"] = {"kind": "trace", "trace": plain(candidate.sch.trace.as_json())}
                fine = {"status": "ok", "samples_s": [1e-3 / (n + 1)] * 3}
                records.write(
                    json.dumps({**line, **(fine if n < count else {"status": "wrong_result"})}) + "\n"
                )


def write_checkpoint(folder: Path, workloads: Sequence[TvmWorkload] = (MATMUL, SOFTMAX)) -> None:
    """A bundle for tensor programs: a cost model that has learned nothing, and a store."""
    import torch

    from gnnperf.corpus.reader import read_corpus
    from gnnperf.nn import Bundle, load_checkpoint, save_checkpoint
    from gnnperf.nn.traces import CostModel, CostModelConfig, TensorBundle
    from gnnperf.retrieval.from_corpus import fill_store
    from gnnperf.shipped import shipped_bundle
    from gnnperf.store import Store

    corpus = folder.with_name(f"{folder.name}-corpus")  # a checkpoint is written into an empty folder
    write_corpus(corpus, workloads)
    bundle = load_checkpoint(shipped_bundle(), Bundle)
    torch.manual_seed(0)
    save_checkpoint(
        folder,
        TensorBundle([CostModel(CostModelConfig())]),
        lambda store: fill_store(read_corpus(corpus), bundle, Store.open(store, create=True)),
    )
    corpus.rename(folder / "corpus")


def _about(workload: TvmWorkload) -> dict[str, Any]:
    host = describe_host()
    return {
        "task": workload.name,
        "name": workload.name,
        "family": workload.kind,
        "frontend": "tvm",
        "parameters": dict(workload.params),
        "split": workload.split,
        "baseline": {"name": "tvm-default", "samples_s": [2e-3] * 3},
        "target": {"kind": "llvm", "mcpu": host_mcpu(), "num-cores": 2},
        "threads": 2,
        "device": {"fingerprint": host.fingerprint, "name": host.name},
        "versions": {"tvm": "0.27", "llvm": 22},
        "collected": "2026-01-01",
    }
