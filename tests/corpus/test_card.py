"""The data card says what is in a corpus, and is the same whenever it is made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.synthetic import measurement, nest, nest_like, two_worlds, write_corpus

from gnnperf.cli.main import run

REPO = Path(__file__).parents[2]


def small_corpus(folder: Path) -> Path:
    """Two nests, one of them in a held-out family: six measurements, one of which failed."""
    gemm, spmv = nest_like([64, 32], reduction=True), nest_like([128])
    machine = {"threads": 2, "versions": {"compiler": "g++ 12"}, "collected": "2026-01-02T03:04:05Z"}
    return write_corpus(
        folder,
        [nest(gemm, "gemm", **machine), nest(spmv, "spmv", **machine)],
        [
            *(measurement(gemm.digest, f"s{i}", 0.5, baseline_s=1.0 + i / 10) for i in range(4)),
            measurement(gemm.digest, "fast", 0.25, origin="default"),
            measurement(spmv.digest, "wrong", None),
        ],
    )


@pytest.mark.parametrize("content", [b"\xff", b"data: {validation_families: null, test_families: []}"])
def test_a_model_that_is_none(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.yaml").write_bytes(content)
    corpus = str(small_corpus(tmp_path / "corpus"))
    assert run(["corpus", "card", corpus, "--model", str(tmp_path / "model.yaml")]) == 2
    assert "--model: expected the configuration of a model, got" in capsys.readouterr().err


def test_card_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(REPO / "configs/models/first.yaml")
    assert run(["corpus", "card", str(small_corpus(tmp_path)), "--model", model, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["tasks"], found["measurements"], found["timed"]) == (2, 6, 5)
    assert found["statuses"] == {"ok": 5, "wrong_result": 1}
    assert found["origins"] == {"foreign": 5, "default": 1}
    assert found["families"]["gemm"]["best_speedup"] == pytest.approx(4.0)
    assert {name: f["split"] for name, f in found["families"].items()} == {
        "gemm": "training",
        "spmv": "validation",
    }
    assert found["best_speedup"]["none_found"] == 1  # nothing was right for the nest of spmv
    assert found["noise"]["half_width"]["p50"] == pytest.approx(0.005)
    # Baselines 1.0, 1.0, 1.1, 1.2, 1.3: one of them is a repetition of the same value, four are left.
    assert found["noise"]["repeated_baselines"] == 0


def test_card_is_written_and_always_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = two_worlds(tmp_path / "worlds")
    digest = json.loads((corpus / "tasks.jsonl").read_text().partition("\n")[0])["task"]
    budget = {"trials": 40, "patience": 12, "seconds": 60.0}
    lines = [
        *(
            {"key": key}
            for key in (
                'search ["a"]',
                'search ["b"]',
                'cross ["a"] 0',
                'cross ["b"] 0',
                'cross ["a"] 1',
                "nest x",
            )
        ),
        {"key": f"nest {digest}", "trials": 25, "search_s": 1.0, "ended": "trials", "budget": budget},
        {"key": f"nest {digest}", "trials": 31, "search_s": 2.5, "ended": "converged", "budget": budget},
        {"key": "portfolio 2", "recipes": [{}, {}]},
    ]
    (corpus / "done.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run(["corpus", "card", str(corpus)]) == 0
    printed = capsys.readouterr().out
    assert run(["corpus", "card", str(corpus), "--write"]) == 0
    card = (corpus / "README.md").read_text(encoding="utf-8")
    assert card.strip() == printed.strip()
    assert card.startswith("# Corpus `worlds`\n")
    assert "24 tasks (dace)" in card
    assert "| search 2, cross 1 |" in card
    assert "(40 trials, patience 12, 60 s). What ended it: converged;" in card
    assert "| schedules tried | 31 | 31 | 31 |" in card
    assert "(origin `foreign`): 2 that are the same for all nests" in " ".join(card.split())
    assert "\n## Licence\n" in card
    assert "The loops of 24 are held beside the graph." in " ".join(card.split())


def test_card_counts_the_tasks_that_hold_their_loops(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held, graph_alone = nest_like([64]), nest_like([128])
    loops = {"name": "map", "buffers": [], "body": [], "parameters": {}}
    corpus = write_corpus(
        tmp_path,
        [nest(held, "map", nest=loops), nest(graph_alone, "map")],
        [measurement(graph.digest, "s", 0.5) for graph in (held, graph_alone)],
    )
    assert run(["corpus", "card", str(corpus)]) == 0
    assert "The loops of 1 are held beside the graph." in " ".join(capsys.readouterr().out.split())
    bare = [nest(graph, "map") for graph in (held, graph_alone)]
    lines = [measurement(graph.digest, "s", 0.5) for graph in (held, graph_alone)]
    assert run(["corpus", "card", str(write_corpus(tmp_path / "bare", bare, lines))]) == 0
    assert "are held beside" not in " ".join(capsys.readouterr().out.split())


def test_no_corpus_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["corpus", "card", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "give the folder that `gnnperf collect` wrote" in said


@pytest.mark.parametrize(
    "name",
    "chains composed discrete first flows in_place lanes random random_avx2 random_search random_xeon small "
    "steps tensor windows".split(),
)
def test_released_cards_are_those_of_the_released_corpora(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = REPO / "checkpoints" / "corpus" / name
    model = ["--model", str(REPO / "configs/models/first.yaml")] if name == "first" else []
    assert run(["corpus", "card", str(folder), *model]) == 0
    assert capsys.readouterr().out.strip() == (folder / "README.md").read_text(encoding="utf-8").strip()
