"""What is on the pages."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from report.made_up import CPU, graph, nest, retrieval

from gnnperf.devices import DeviceSpec, find_device
from gnnperf.evaluation import BenchmarkResult
from gnnperf.measure import Timing
from gnnperf.report import Forecast, benchmark_page, prediction_page, retrieval_page
from gnnperf.retrieval.report import Comparison

HOSTILE = '</style><script>alert(1)</script><b id="hostile">&amp;'


class Text(HTMLParser):
    """The words of a page, and its elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []
        self.hidden = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        self.hidden += tag in ("style", "title")

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in ("style", "title")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.words += data.split()

    @property
    def text(self) -> str:
        return " ".join(self.words)


def page_of(*nests: object, **changes: object) -> str:
    graphs = {graph(name).digest: graph(name) for name in ("gemm", "softmax")}
    return retrieval_page(retrieval(*nests, **changes), graphs, CPU)  # type: ignore[arg-type]


def self_contained(html: str) -> None:
    assert "script" not in Text(html).tags
    assert not re.search(r"""(src|href)=["'](?!#|data:)""", html)
    assert "style=" not in html, "the policy of the page forbids it"
    assert not re.search(r"url\((?!#)", html)


def test_the_verdict_and_the_nests() -> None:
    html = page_of(nest("gemm"), nest("softmax", None, share=0.05))
    self_contained(html)
    text = Text(html).text
    assert "21.2× 95% interval [12.4, 25.3] dace-auto 25.53 ms [25.21, 26.28] tuned 1.205 ms" in text
    assert "8.00× [7.20, 9.60]" in text
    assert "wrong result" in text and "c[0, 3]: 1.5, not 1.25" in text
    assert "baseline kept; best tried:" in text
    assert "C[i, j] += A[i, k] * B[k, j]" in text, "the picture of the nest"
    assert "500 GFLOP/s" in text and "limited by memory" in text
    assert "kernel_8" in text and "4 more" in text, "neighbours"
    assert html.count('<tr class="kept">') == 1


def test_confidence_and_other_libraries() -> None:
    others = [
        Comparison("torch", "ok", Timing(2.5e-3, (2.4e-3, 2.7e-3)), 2.0, (1.9, 2.2)),
        Comparison("blas", "not_applicable", detail="it has no such operation"),
    ]
    sure = replace(nest("gemm"), confidence=0.79, confident=False, beside=others)
    text = Text(page_of(sure)).text
    assert "with a probability of 79%: a larger -k may find more" in text
    assert "torch 2.500 ms [2.400, 2.700] 2.00× [1.90, 2.20]" in text
    assert "it has no such operation" in text


def test_nothing_was_measured() -> None:
    silent = nest(
        "gemm", None, candidates=[], baseline_s=None, best_s=None, share=None, reason="nothing near"
    )
    html = page_of(
        silent, baseline=None, tuned=None, speedup=None, speedup_interval=None, verified=False, stages_s={},
        kept_baseline=True, note="nothing was measured (--model-only)",
    )  # fmt: skip
    text = Text(html).text
    assert "Nothing was measured" in text and "nothing near" in text
    assert 'class="roofline"' not in html


def test_a_kept_baseline_claims_no_speedup() -> None:
    html = page_of(
        nest("gemm", None), speedup=1.0, speedup_interval=None, kept_baseline=True, note="none won"
    )
    text = Text(html).text
    assert "Baseline kept" in text and "none won" in text
    assert "tuned" not in text.split("Nests")[0]


def test_without_peaks_there_is_no_roofline() -> None:
    html = retrieval_page(retrieval(nest("gemm")), {graph("gemm").digest: graph("gemm")}, None)
    assert 'class="roofline"' not in html and 'class="nest"' in html


def test_names_are_text() -> None:
    changed = replace(nest("gemm"), name=HOSTILE, reason=HOSTILE)
    html = page_of(changed, kernel=HOSTILE, note=HOSTILE, skipped=[{"part": HOSTILE, "reason": HOSTILE}])
    self_contained(html)
    assert Text(html).text.count("<script>alert(1)</script>") >= 5
    result = BenchmarkResult(HOSTILE, {HOSTILE: 1.0}, [{HOSTILE: HOSTILE}], {HOSTILE: HOSTILE})
    self_contained(benchmark_page(result))
    self_contained(prediction_page(HOSTILE, [Forecast(HOSTILE, CPU, objection=HOSTILE)]))


def gpu(name: str = "l4") -> DeviceSpec:
    return find_device(name, {})


def forecast(scale: float = 1.0, name: str = "l4") -> Forecast:
    spans = {"50%": (0.9, 1.1), "80%": (0.8, 1.3), "95%": (0.6, 1.8)}
    return Forecast(
        name, gpu(name), 7e-3 * scale,
        {level: (7e-3 * scale * lo, 7e-3 * scale * hi) for level, (lo, hi) in spans.items()},
        2.5e-3 * scale, 6e10, 2e8, (1e-3, 5e-3, 1e-3),
    )  # fmt: skip


def test_predicted_runtimes_by_gpu() -> None:
    silent = Forecast("a100", gpu("a100"), objection="it is too far from what was measured")
    html = prediction_page(
        "model.py:mlp", [forecast(), forecast(0.3, "h200"), silent], ["first", "second", "first"], ["a note"]
    )
    self_contained(html)
    text = Text(html).text
    assert "7.000 ms [6.300, 7.700] [5.600, 9.100] [4.200, 12.60] 2.500 ms 36%" in text
    assert "no prediction: it is too far from what was measured" in text
    assert "a note" in text
    assert html.count('class="roofline"') == 2
    # Equal operators are one row: 2 of 7 ms, the other one 5 of 7.
    assert re.search(r"second 1 5\.000 ms 71% .* first 2 2\.000 ms 29%", text)


def test_a_benchmark() -> None:
    rows = [{"kernel": "gemver", "speedup": 2.5, "interval": [2.0, 3.0], "kept": True}] * 3
    html = benchmark_page(
        BenchmarkResult("case-x", {"geomean_vs_numpy": 1.79}, rows, {"threads": 2}),
        [{"kernel": "gemver"}] * 3,
    )
    self_contained(html)
    text = Text(html).text
    assert "1.79 geomean vs numpy" in text and "3 rows" in text and "threads 2" in text
    assert "gemver 2.50 [2.00, 3.00] yes" in text, "all columns, behind a fold"


def test_an_empty_benchmark_has_no_plot() -> None:
    def fail(path: object) -> None:
        raise AssertionError("there is nothing to draw")

    assert "0 rows" in benchmark_page(BenchmarkResult("x", {}, [], {}), None, {"a caption": fail})


def test_configurations_to_try(monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    from gnnperf.frontends.gpu_kernels import find_description
    from gnnperf.report import configurations_page
    from gnnperf.retrieval.tunable import ConfigurationProposal, Prediction

    description = find_description("gemm")
    first = {name: values[0] for name, values in description.parameters.items()}
    second = {**first, "VWM": description.parameters["VWM"][1]}
    ms = np.array([1.5, 1.6])
    predicted = Prediction(ms, {"50": (ms * 0.9, ms * 1.1), "80": (ms * 0.7, ms * 1.4)}, np.ones(2))
    proposal = ConfigurationProposal("gemm", gpu(), [first, second], predicted, 20_000, [])
    html = configurations_page(proposal, description, {"M": 2048})
    self_contained(html)
    text = Text(html).text
    assert "2 of 20,000 configurations" in text
    assert "M = 2,048" in text
    assert "1.500 ms [1.050, 2.100]" in text
    assert 'class="roofline"' in html and 'class="nest"' in html
