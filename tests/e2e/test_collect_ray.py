"""`gnnperf collect --ray`: a worker is killed, the user interrupts, and then it is left to finish."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from corpus.tiny import write_config
from e2e.conftest import MARK, Shell
from e2e.test_interrupts import wait_until

from gnnperf.training import load_corpus


def workers(shell: Shell) -> list[int]:
    """Processes of the cluster that measure: Ray names them after what they do."""
    mark = f"{MARK}={shell.folder}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            mine = mark in (process / "environ").read_bytes().split(b"\0")
            if mine and (process / "cmdline").read_bytes().startswith(b"ray::_Worker"):
                found.append(int(process.name))
        except OSError:  # it ended meanwhile
            continue
    return found


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Sockets of Ray are in the folder for temporary files, and their names must not be long."""
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.mark.slow
def test_the_log_stays_whole_whatever_happens(tmp_path: Path, short_folder: Path) -> None:
    shell = Shell(tmp_path, {"TMPDIR": str(short_folder)})
    write_config(tmp_path, recipes=2, foreign=1)
    log = tmp_path / "corpus" / "records.jsonl"
    command = ("collect", "corpus.yaml", "--output", "corpus", "--ray", "local")

    def count() -> int:
        return len(log.read_text().splitlines()) if log.exists() else 0

    with shell.start(*command) as process:
        wait_until(lambda: count() >= 1)
        for worker in workers(shell):
            os.kill(worker, signal.SIGKILL)
        stdout, stderr = process.communicate()
    assert (process.returncode, stdout) == (1, ""), stderr
    assert "was lost" in stderr
    assert "all machines of the cluster were lost; run the same command to go on" in stderr
    after_loss = count()

    with shell.start(*command) as process:
        wait_until(lambda: count() > after_loss)
        os.killpg(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate()
    assert (process.returncode, stdout) == (130, ""), stderr
    assert f"interrupted; {count()} measurements are kept in corpus" in stderr
    assert "Traceback" not in stderr
    assert all(json.loads(line) for line in log.read_text().splitlines())

    answer = shell.gnnperf(*command, "--json").document
    assert answer["tasks"] == 2 and answer["statuses"]["ok"] > 2
    assert answer["left_out"] == []
    corpus = load_corpus(tmp_path / "corpus")
    assert corpus.measurement_count == answer["measurements"] == count(), "nothing was measured twice"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {line["device"] for line in lines} == {
        json.loads(line)["device"]["fingerprint"]
        for line in (tmp_path / "corpus" / "tasks.jsonl").read_text().splitlines()
    }
    wait_until(lambda: not shell.processes())
