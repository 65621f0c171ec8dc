"""Answers of the verbs, made up for the tests of their pages."""

from __future__ import annotations

from dataclasses import replace

from nests.examples import EXAMPLES

from gnnperf.devices import DeviceSpec
from gnnperf.graph import ProgramGraph
from gnnperf.measure import Timing
from gnnperf.nests import nest_graph
from gnnperf.retrieval.report import NestReport, RetrievalReport, TriedReport

CPU = DeviceSpec(
    kind="cpu", name="A CPU of eight cores", arch="x86_64", isa="avx512", cores=8, threads=16,
    peak_gflops_fp32=1000.0, peak_gflops_fp64=500.0, bandwidth_gbps=50.0, source="made up",
)  # fmt: skip
WORDS = "panel order, tile q:96 p:256 r:256, register tile q:8 p:3, vectorize p, parallel spatial static"


def graph(name: str = "gemm") -> ProgramGraph:
    return nest_graph(EXAMPLES[name]())


def tried(rank: int, speedup: float | None, status: str = "ok", **changes: object) -> TriedReport:
    """A candidate of the nest below, whose baseline takes 10 ms."""
    made = TriedReport(
        rank=rank, neighbour="0" * 32, neighbour_kernel=f"kernel_{rank}", distance=0.03 * rank, score=1.0,
        schedule={"number": rank}, words=WORDS, status=status, speedup=speedup,
        speedup_interval=None if speedup is None else (0.9 * speedup, 1.2 * speedup),
        runtime_s=None if speedup is None else 0.01 / speedup,
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def nest(name: str = "gemm", kept: int | None = 1, **changes: object) -> NestReport:
    """kept: rank of the candidate that was accepted."""
    candidates = [
        tried(1, 8.0), tried(2, 0.8), tried(3, None, "wrong_result", detail="c[0, 3]: 1.5, not 1.25"),
        tried(4, None, "not_applicable", detail="the nest has no reduction"),
    ]  # fmt: skip
    made = NestReport(
        name=name, digest=graph(name).digest, baseline_s=0.01, baseline_name="dace-auto",
        baseline_note="", best_s=0.01 if kept is None else 0.00125,
        abstained=False, reason="" if kept else "none was faster than the baseline beyond noise",
        accepted={"number": kept} if kept else None, accepted_words=WORDS if kept else "", share=0.93,
        candidates=candidates,
        neighbours=[
            {"digest": f"{i:032x}", "kernel": f"kernel_{i}", "family": "a family", "distance": 0.03 * i}
            for i in range(1, 13)
        ],
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def retrieval(*nests: NestReport, **changes: object) -> RetrievalReport:
    made = RetrievalReport(
        kernel="attention", device="cpu/x86_64/avx512", baseline_name="dace-auto", baseline_note="",
        baseline=Timing(0.02553, (0.02521, 0.02628)), tuned=Timing(0.001205, (0.00104, 0.002027)),
        speedup=21.2, speedup_interval=(12.44, 25.27), verified=True, kept_baseline=False, note="",
        candidates_measured=3, wall_s=12.3, nests=list(nests), skipped=[],
        stages_s={"loading": 1.2, "inputs": 0.4, "embedding": 0.003, "candidates": 8.1, "whole": 2.2},
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]
