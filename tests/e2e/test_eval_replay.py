"""`gnnperf eval transfer`, `ablation` and `search` as whole commands, on a small corpus."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.conftest import Shell
from e2e.test_interrupts import PATIENCE_S, wait_until
from evaluation.worlds import GOOD, two_tastes

from gnnperf.cli.main import run

REQUIRED = (
    "efficiency_at_1",
    "efficiency_at_3",
    "efficiency_at_5",
    "vs_best_single_at_3",
    "vs_perceptron_at_3",
    "vs_without_network_at_3",
    "vs_boosted_trees_at_3",
    "confident_within_10pct",
    "nests",
    "families",
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    own = [("random", 0.9), ("random", GOOD), ("random", 0.8)]
    return two_tastes(tmp_path_factory.mktemp("corpus"), own, sizes=[64])


@pytest.mark.slow
def test_the_whole_table(shell: Shell, corpus: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = ("eval", "transfer", "--corpus", corpus, "--folds", 3, "--quick", "--json")
    document = shell.gnnperf(*command).document
    assert document["benchmark"] == "transfer" and document["settings"]["quick"]
    assert set(REQUIRED) <= document["figures"].keys()
    assert (document["figures"]["nests"], document["figures"]["families"]) == (8, 8)
    everything = [row for row in document["rows"] if row["subset"] == "all"]
    assert len(everything) == 13 * 4
    assert document["settings"]["split"] == "family"
    # The same seed, the same answer, however many share the work.
    again = shell.here(capfd, *command, "--policy", "ours", "--workers", 1).document["figures"]
    assert {"efficiency_at_1", "efficiency_at_3", "confident_within_10pct"} <= again.keys()
    assert again == {name: document["figures"][name] for name in again}


@pytest.mark.slow
def test_what_parts_are_worth(shell: Shell, corpus: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = ("eval", "ablation", "--corpus", corpus, "--folds", 3, "--workers", 1, "--quick", "--json")
    document = shell.here(capfd, *command).document
    figures = document["figures"]
    assert document["benchmark"] == "ablation" and len(document["rows"]) == 12 * 4
    assert 0 < figures["nests_full_at_1"] <= figures["nests_full_at_3"] <= 1
    assert figures["nests_ratio_at_1_low"] <= figures["nests_ratio_at_1"] <= figures["nests_ratio_at_1_high"]
    for row in document["rows"]:
        assert row["low"] <= row["efficiency"] <= row["high"]
        assert row["of_ours_low"] <= row["of_ours"] <= row["of_ours_high"]


def test_for_people(shell: Shell, corpus: Path, capfd: pytest.CaptureFixture[str]) -> None:
    policies = ("--policy", "lookup", "--policy", "oracle")
    command = ("eval", "transfer", "--corpus", corpus, *policies, "--split", "size", "--workers", 1)
    done = shell.here(capfd, *command)
    assert done.exit_code == 0, done.stderr
    assert "exact lookup" in done.stdout
    assert "map_add" not in done.stdout
    assert "map_add" in shell.here(capfd, *command, "--families").stdout


@pytest.mark.slow
def test_searches(shell: Shell, corpus: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = ("eval", "search", "--corpus", corpus, "--no-trials", "--folds", 3, "--workers", 1, "--quick")
    done = shell.here(capfd, *command, "--json")
    figures = done.document["figures"]
    assert figures["median_trials_to_match_3"] == figures["max_trials_to_match_3"] == 2.0
    assert {row["search"] for row in done.document["rows"]} == {"random"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--folds", 99], "expected at least 3 folds and at most 8, the families of the corpus, got 99"),
        (["--policy", "magic"], "--policy: expected one of random, "),
        (["--seeds", 0], "--seeds: expected at least 1, got 0"),
        (["--workers", 0], "--workers: expected at least 1, got 0"),
        (["--split", "kernel"], "--split"),
        (["--corpus", "nowhere"], "expected a corpus folder with"),
    ],
)
def test_mistakes_are_one_line(
    corpus: Path, options: list[object], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    given = [] if "--corpus" in options else ["--corpus", corpus]
    assert run(["eval", "transfer", *map(str, given + options)]) == 2
    said = capfd.readouterr()
    assert message in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)


def test_no_trials_is_one_line(corpus: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = ["eval", "search", "--corpus", str(corpus), "--trials", str(tmp_path / "none")]
    assert run([*command, "--no-trials"]) == 2
    assert "--trials: --no-trials takes none" in capfd.readouterr().err
    assert run(command) == 2
    said = capfd.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert "--no-trials" in said.err


@pytest.fixture
def replaying(shell: Shell, corpus: Path) -> Iterator[subprocess.Popen[str]]:
    """A long replay whose workers have begun."""
    running = shell.start("eval", "transfer", "--corpus", corpus, "--policy", "ours", "--folds", 8)
    wait_until(lambda: sum("spawn_main" in command for command in shell.processes()) == 2)
    yield running
    wait_until(lambda: not shell.processes())


def test_interrupted_it_ends_its_processes(replaying: subprocess.Popen[str]) -> None:
    os.killpg(replaying.pid, signal.SIGINT)
    stdout, stderr = replaying.communicate(timeout=PATIENCE_S)
    assert replaying.returncode == 130
    assert stdout == ""
    assert stderr.splitlines()[-1] == "gnnperf: interrupted; nothing was reported"
    assert "Traceback" not in stderr  # of the workers


def test_killed_it_leaves_no_process_behind(replaying: subprocess.Popen[str]) -> None:
    replaying.kill()
    replaying.communicate(timeout=PATIENCE_S)
