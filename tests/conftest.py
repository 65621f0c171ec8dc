"""What all tests share: the hypothesis profiles, golden files, a compiler, a runner and an encoder."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from gnnperf.measure import Compiler, Runner

if TYPE_CHECKING:
    from gnnperf.nn import Bundle

pytest_plugins = ["helpers.requirements"]

GOLDEN = Path(__file__).parent / "golden"

# A shell starts background jobs with Ctrl-C ignored, and their children inherit that: tests that
# interrupt a command would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What is printed into a file must not depend on the terminal of the tests (xdist passes its width on).
os.environ.pop("COLUMNS", None)

# No deadline: the machines are shared. On CI the examples are fixed, so that a red run can be repeated.
settings.register_profile("default", deadline=None, max_examples=50)
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the files in tests/golden")


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Small networks are trained many times faster than by threads that wait for cores in use."""
    torch = sys.modules.get("torch")
    if hasattr(torch, "set_num_threads"):  # it is not half imported
        torch.set_num_threads(1)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)`: `text` equals `tests/golden/<name>`, or, with `--update-golden`, replaces it."""
    update = request.config.getoption("--update-golden")

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no golden file {path}: run pytest --update-golden and read what it wrote"
        assert text == path.read_text(encoding="utf-8"), f"differs from {path}; --update-golden takes it"

    return check


@pytest.fixture(scope="module")
def compiler() -> Iterator[Compiler]:
    """What was compiled for one test of a file is there for the next."""
    with Compiler() as shared:
        yield shared


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as shared:
        yield shared


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of an encoder with random weights: nests are at points of their own, whatever was learned."""
    import torch

    from gnnperf.nn import Bundle, Encoder, EncoderConfig, ScheduleHead, save_checkpoint
    from gnnperf.schedules.recipes import fact_fields

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("checkpoint")
    head = ScheduleHead(EncoderConfig().width, len(fact_fields()))
    save_checkpoint(folder, Bundle(Encoder(EncoderConfig()).eval(), head.eval()))
    return folder


@pytest.fixture(scope="session")
def bundle(checkpoint: Path) -> Bundle:
    """`checkpoint`, loaded."""
    from gnnperf.nn import Bundle, load_checkpoint

    return load_checkpoint(checkpoint, Bundle)
