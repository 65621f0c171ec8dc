"""`gnnperf train` as two processes: what one user would see of it is what one process would print."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.conftest import REPO, Shell
from helpers.synthetic import two_worlds


@pytest.mark.slow
def test_two_processes_train_one_encoder(tmp_path: Path) -> None:
    two_worlds(tmp_path / "corpus")
    shell = Shell(tmp_path, {"OMP_NUM_THREADS": "1"})
    done = shell.gnnperf(
        "train", "fit", "--json", "-c", REPO / "configs/models/first.yaml", "--data.corpora=[corpus]",
        "--data.validation_families=[map_add,reduce_mul]", "--data.test_families=[]",
        "--data.batch_size=4", "--trainer.max_epochs=2",
        "--model.encoder.width=32", "--model.encoder.layers=2", "--trainer.strategy=ddp",
        "--trainer.devices=2",
    )  # fmt: skip
    document = done.document  # one: the second process is silent
    assert document["epochs"] == 2
    assert (tmp_path / document["bundle"] / "metadata.json").is_file()
    assert [path.name for path in (tmp_path / "runs" / "first").glob("version_*")] == ["version_0"]
