"""gnnperf: find tuned kernels like yours, transfer their schedules, measure, keep the winner.

Six lines say most of it:

    import gnnperf

    found = gnnperf.retrieve("kernel.py:gemm", N=512)   # or the @dace.program, PrimFunc, torch module itself
    print(found.speedup, found.schedules)
    found.call(A=a, B=b, C=c)                           # the tuned kernel, in place
    found.save("tuned")                                 # a library, a script that loads it, the report
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gnnperf.integrations.dace import tuned
    from gnnperf.session import Retrieval, Session, TaskEmbedding, load

__version__ = "0.1.0"
__all__ = [
    "Retrieval",
    "Session",
    "TaskEmbedding",
    "embed",
    "load",
    "predict",
    "propose",
    "retrieve",
    "tune",
    "tuned",
]

_DEFAULT: list[Session] = []


def retrieve(kernel: Any, inputs: Any = None, **options: Any) -> Retrieval:
    """`Session.retrieve` with the released models and your default store."""
    return _default().retrieve(kernel, inputs, **options)


def tune(kernel: Any, inputs: Any = None, **options: Any) -> Retrieval:
    """`Session.tune` with the released models and your default store."""
    return _default().tune(kernel, inputs, **options)


def embed(*kernels: Any, **options: Any) -> list[TaskEmbedding]:
    """`Session.embed` with the released encoder."""
    return _default().embed(*kernels, **options)


def predict(kernel: Any, gpus: Any, **options: Any) -> Any:
    """`Session.predict` with the released models."""
    return _default().predict(kernel, gpus, **options)


def propose(kernel: str, gpu: str, **options: Any) -> Any:
    """`Session.propose` with the released models."""
    return _default().propose(kernel, gpu, **options)


def _default() -> Session:
    """One session for all calls: models are loaded once."""
    if not _DEFAULT:
        from gnnperf.session import load

        _DEFAULT.append(load())
    return _DEFAULT[0]


def __getattr__(name: str) -> Any:
    # DaCe and torch take seconds to import, and `gnnperf --help` needs neither.
    if name == "tuned":
        from gnnperf.integrations.dace import tuned

        return tuned
    if name in ("TaskEmbedding", "Retrieval", "Session", "load"):
        from gnnperf import session

        return getattr(session, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
