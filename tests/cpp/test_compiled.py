"""The C++ client runs AOTInductor artefacts as it runs TorchScript."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import GOLDEN

from gnnperf.graph import ProgramGraph
from gnnperf.nn import Bundle, load_checkpoint

GRAPHS = sorted((GOLDEN / "graphs").glob("*.json"))


@pytest.mark.slow
def test_golden_graphs_embed_alike(client: Callable[..., Any], compiled_folder: Path) -> None:
    graphs = [ProgramGraph.from_json(path.read_text()) for path in GRAPHS]
    expected = load_checkpoint(compiled_folder, Bundle).embed(graphs)
    document = client("embed", compiled_folder / "out" / "model.pt2", *GRAPHS)
    assert np.abs(np.array([g["embedding"] for g in document["graphs"]]) - expected).max() < 1e-5


def test_what_is_no_compiled_model_is_refused(refusal: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "m.pt2").write_bytes(b"no archive")
    assert "expected an archive written by" in refusal("embed", tmp_path / "m.pt2", GRAPHS[0])
