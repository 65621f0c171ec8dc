"""`gnnperf collect` with `beside`: long searches of nests of a corpus, started again, compared with."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from e2e.conftest import KERNELS, Shell

from gnnperf.evaluation.outcomes import Outcomes
from gnnperf.evaluation.search import evolutionary_trials, random_trials
from gnnperf.training import load_corpus

CONFIG = f"""
name: tiny
{{beside}}
recipes_per_nest: {{recipes}}
foreign_per_nest: 0
entries:
  - {{{{kernel: {KERNELS.name}:scores, family: gemm, symbols: {{{{N: 40, M: 48, K: 56}}}}}}}}
"""


@pytest.mark.slow
def test_searches_of_a_nest_are_recorded_and_go_on(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (tmp_path / KERNELS.name).write_text(KERNELS.read_text())
    for name, recipes, beside in (("corpus", 4, ""), ("first", 10, "beside: corpus")):
        (tmp_path / f"{name}.yaml").write_text(CONFIG.format(recipes=recipes, beside=beside))
    assert shell.gnnperf("collect", "corpus.yaml", "--output", "corpus").exit_code == 0
    corpus = load_corpus(tmp_path / "corpus")
    (digest,) = corpus.measurements

    done = shell.gnnperf("collect", "first.yaml", "-o", "trials")
    assert done.exit_code == 0, done.stderr
    (recorded,) = load_corpus(tmp_path / "trials").measurements.values()
    origins = Counter(m.origin for m in recorded.values())
    assert origins["random"] == 10
    assert origins["mutation"] == 6  # 2 random ones, then 6 mutations, then 8 random ones
    assert len(evolutionary_trials(recorded)) == 8
    assert len(random_trials(recorded)) == 10
    assert set(corpus.measurements[digest]) <= set(recorded)  # timed again beside the others
    assert Outcomes(recorded).tried(evolutionary_trials(recorded))

    again = shell.gnnperf("collect", "first.yaml", "-o", "trials")
    assert again.exit_code == 0, again.stderr
    (same,) = load_corpus(tmp_path / "trials").measurements.values()
    assert same == recorded


def test_no_corpus_is_one_line(tmp_path: Path) -> None:
    (tmp_path / KERNELS.name).write_text(KERNELS.read_text())
    (tmp_path / "first.yaml").write_text(CONFIG.format(recipes=1, beside="beside: nowhere"))
    done = Shell(tmp_path).gnnperf("collect", "first.yaml", "-o", "trials")
    assert done.exit_code == 2
    assert done.stderr.startswith("gnnperf: expected a corpus folder")
    assert done.stderr.count("\n") == 1
