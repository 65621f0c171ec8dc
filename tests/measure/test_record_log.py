"""The append-only log: whatever ends its writer, what was written is there and no line is half."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard
from helpers.synthetic import measurement, nest, nest_like

from gnnperf.errors import CorpusError, GnnperfError
from gnnperf.measure.record_log import RecordLog, RelayedLog
from gnnperf.training import load_corpus

GRAPHS = [nest_like([size, size]) for size in (8, 16, 32)]


def fill(log: RecordLog, number: int, schedules: int = 3) -> None:
    """One nest with some measurements."""
    graph = GRAPHS[number]
    log.add("tasks", nest(graph, "family"))
    for schedule in range(schedules):
        log.add("records", measurement(graph.digest, f"s{schedule}", 0.5 + schedule))
    log.mark_done(f"work {number}", ended="converged")


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    log = RecordLog(tmp_path)
    fill(log, 0)
    log.close()
    again = RecordLog(tmp_path)
    assert (again.tasks, again.records, again.done) == (
        log.tasks,
        log.records,
        {"work 0": {"key": "work 0", "ended": "converged"}},
    )
    again.close()
    corpus = load_corpus(tmp_path)
    assert (len(corpus.nests), corpus.measurement_count) == (1, 3)


def test_a_nest_is_written_once_and_the_last_measurement_counts(tmp_path: Path) -> None:
    log = RecordLog(tmp_path)
    fill(log, 0)
    fill(log, 0)
    log.add("records", measurement(GRAPHS[0].digest, "s0", 9.0))
    log.close()
    assert len(lines(tmp_path / "tasks.jsonl")) == 1
    again = RecordLog(tmp_path)
    assert again.records[GRAPHS[0].digest]["s0"]["runtime_s"] == 9.0
    again.close()


@pytest.mark.parametrize("cut", [1, 7, 100])
def test_a_torn_last_line_is_cut_off(cut: int, tmp_path: Path) -> None:
    log = RecordLog(tmp_path)
    fill(log, 0)
    log.close()
    path = tmp_path / "records.jsonl"
    os.truncate(path, path.stat().st_size - cut)
    again = RecordLog(tmp_path)
    assert set(again.records[GRAPHS[0].digest]) == {"s0", "s1"}
    again.add("records", measurement(GRAPHS[0].digest, "s2", 1.0))
    again.close()
    assert all(json.loads(line) for line in lines(path))
    assert len(lines(path)) == 3


def test_sealed_and_resumed_and_sealed_again(tmp_path: Path) -> None:
    for number in range(3):
        log = RecordLog(tmp_path)
        assert set(log.done) == {f"work {n}" for n in range(number)}
        fill(log, number)
        log.seal()
        assert sorted(p.name for p in tmp_path.iterdir()) == [
            "done.jsonl.zst", "records.jsonl.zst", "tasks.jsonl.zst",
        ]  # fmt: skip
    log = RecordLog(tmp_path)
    log.add("records", measurement(GRAPHS[0].digest, "after", 1.0))
    assert sum(map(len, log.records.values())) == 10
    log.close()
    corpus = load_corpus(tmp_path)  # what trains a model reads both parts
    assert (len(corpus.nests), corpus.measurement_count) == (3, 10)


def test_a_seal_that_was_interrupted_loses_nothing(tmp_path: Path) -> None:
    """Killed after the new frame was in place and before the plain file was removed: lines are double."""
    log = RecordLog(tmp_path)
    fill(log, 0)
    log.close()
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    RecordLog(tmp_path).seal()
    for name, content in before.items():
        (tmp_path / name).write_bytes(content)
    log = RecordLog(tmp_path)
    assert len(log.tasks) == 1
    assert sum(map(len, log.records.values())) == 3
    log.close()
    corpus = load_corpus(tmp_path)
    assert (len(corpus.nests), corpus.measurement_count) == (1, 3)


WRITER = """
import sys
from pathlib import Path
from helpers.synthetic import measurement, nest, nest_like
from gnnperf.measure.record_log import RecordLog

log, graph = RecordLog(Path(sys.argv[1])), nest_like([8, 8])
log.add("tasks", nest(graph, "family"))
for number in range(10**9):
    log.add("records", measurement(graph.digest, f"s{number}", 1.0))
    print(number, flush=True)
"""


def test_kill_9_of_the_writer_loses_nothing_that_it_reported(tmp_path: Path) -> None:
    tests = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([tests, *sys.path])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as writer:
        assert writer.stdout is not None
        for _ in range(50):
            writer.stdout.readline()
        writer.kill()
        reported = 50 + len(writer.stdout.read().splitlines())
    log = RecordLog(tmp_path)
    assert len(log.records[GRAPHS[0].digest]) in (reported, reported + 1)
    log.close()


def test_what_a_fork_adds_is_sent_to_who_holds_the_files(tmp_path: Path) -> None:
    log = RecordLog(tmp_path)
    sent: list[tuple[str, Any]] = []
    fill(RelayedLog(log.known, sent.append), 0)
    assert not (tmp_path / "records.jsonl").read_bytes()
    assert [name for name, _ in sent] == ["tasks", "records", "records", "records", "done"]
    said: list[str] = []
    for message in (*sent, ("warning", "it is late")):
        log.receiving(said.append)(message)
    log.close()
    assert said == ["it is late"]
    assert load_corpus(tmp_path).measurement_count == 3


def test_two_collections_do_not_share_a_folder(tmp_path: Path) -> None:
    first = RecordLog(tmp_path)
    with pytest.raises(CorpusError, match=r"another process is collecting into .*; wait for it"):
        RecordLog(tmp_path)
    first.close()
    RecordLog(tmp_path).close()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """A file is in its place; root may write into read-only folders."""
    (tmp_path / "file").write_text("")
    with pytest.raises(CorpusError, match=r"cannot write the corpus folder .*; give another folder") as error:
        RecordLog(tmp_path / "file" / "corpus")
    assert "\n" not in str(error.value)


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from helpers.synthetic import measurement, nest, nest_like
from gnnperf.errors import CorpusError, GnnperfError
from gnnperf.measure.record_log import RecordLog

log, graph = RecordLog(Path(sys.argv[1])), nest_like([8, 8])
log.add("tasks", nest(graph, "family"))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
written = 0
try:
    for number in range(1000):
        log.add("records", measurement(graph.digest, f"s{number}", 1.0))
        written += 1
except CorpusError as error:
    log.close()
    print(written, error)
"""


def test_a_full_disk_is_one_line_and_the_log_goes_on_afterwards(tmp_path: Path) -> None:
    tests = str(Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([tests, *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    written, _, line = done.stdout.strip().partition(" ")
    assert int(written) > 0
    assert "File too large; make room and start again, nothing collected so far is lost" in line
    log = RecordLog(tmp_path)
    assert len(log.records[GRAPHS[0].digest]) == int(written)
    fill(log, 1)
    log.close()
    assert load_corpus(tmp_path).measurement_count == int(written) + 3


def test_a_sealed_file_that_expands_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gnnperf.measure.record_log.SMALL", 2**20)
    log = RecordLog(tmp_path)
    fill(log, 0)
    log.seal()
    packed = tmp_path / "records.jsonl.zst"
    packed.write_bytes(packed.read_bytes() + zstandard.compress(b" " * 2**27))
    with pytest.raises(GnnperfError, match="expands to more than"):
        load_corpus(tmp_path)


def test_a_flipped_bit_in_a_sealed_file_is_told(tmp_path: Path) -> None:
    log = RecordLog(tmp_path)
    fill(log, 0)
    log.seal()
    path = tmp_path / "records.jsonl.zst"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1  # of the checksum at the end: any other bit may show as damaged JSON
    path.write_bytes(data)
    with pytest.raises(CorpusError, match=r"cannot read .*records.jsonl.zst: .*; restore it"):
        RecordLog(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tasks.jsonl", b'{"task": "a"}\nnonsense\n', "tasks.jsonl line 2: expected a JSON object"),
        ("tasks.jsonl", b'{"task": ["a"]}\n', "tasks.jsonl line 1: expected names as text"),
        (
            "records.jsonl",
            b'{"task": "a", "schedule_id": {}}\n',
            "records.jsonl line 1: expected names as text .*unhashable.*; remove the line",
        ),
        ("done.jsonl.zst", b"nonsense", "cannot read .*done.jsonl.zst: .*; restore it"),
        (
            "records.jsonl.zst",
            zstandard.ZstdCompressor().compress(b"x\n"),
            "records.jsonl.zst line 1: expected a JSON object .*; remove the line, or restore the file",
        ),
    ],
)
def test_damaged_files_are_one_clear_line(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match=message) as error:
        RecordLog(tmp_path)
    assert "\n" not in str(error.value)
