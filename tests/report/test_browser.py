"""The pages in a real browser: they are drawn, fit, follow light and dark, print, and load nothing."""

from __future__ import annotations

from functools import partial

import pytest
from benchmarks.plots import plot_kernels
from helpers.browsing import Open
from report.made_up import CPU, graph, nest, retrieval
from report.test_pages import forecast

from gnnperf.evaluation import BenchmarkResult
from gnnperf.report import benchmark_page, prediction_page, retrieval_page

pytestmark = pytest.mark.needs("chromium")

LONG = "a_long_name_of_a_kernel_without_a_place_to_break_it_anywhere_" * 2


def retrieved() -> str:
    graphs = {graph(name).digest: graph(name) for name in ("gemm", "softmax")}
    return retrieval_page(retrieval(nest("gemm"), nest("softmax", None), kernel=LONG), graphs, CPU)


def predicted() -> str:
    return prediction_page(LONG, [forecast(), forecast(0.3, "h200")], ["a", "b", "a"], [LONG], graph("gemm"))


def benchmark() -> str:
    rows = [
        {"kernel": f"k{i}", "vs_numpy": 0.5 + i, "vs_numpy_interval": [0.4 + i, 0.7 + i], "note": LONG}
        for i in range(4)
    ]
    result = BenchmarkResult("case-x", {"geomean": 1.79}, rows, {"versions": {"numpy": "1.26"}, "long": LONG})
    return benchmark_page(result, None, {"A caption.": partial(plot_kernels, rows, ("numpy",), "a title")})


PAGES = {"retrieved": retrieved, "predicted": predicted, "benchmark": benchmark}


SURFACE = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
INK = "getComputedStyle(document.body).color.match(/\\d+/g).map(Number)[0]"
TOO_WIDE = """() => [...document.querySelectorAll("main > *, main > * > *")].filter(
    (one) => one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.className || one.tagName)"""


@pytest.mark.parametrize("name", PAGES)
def test_light_dark_and_narrow(opened: Open, name: str) -> None:
    html = PAGES[name]()
    light, dark = opened(html), opened(html, color_scheme="dark")
    assert light.evaluate(SURFACE) > 200 > 60 > light.evaluate(INK)
    assert dark.evaluate(SURFACE) < 60 < 200 < dark.evaluate(INK)
    phone = opened(html, viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    for page in (light, dark, phone):
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate(TOO_WIDE) == []


@pytest.mark.parametrize("name", PAGES)
def test_paper_is_white_and_holds_the_tables(opened: Open, name: str) -> None:
    page = opened(PAGES[name](), color_scheme="dark", viewport={"width": 690, "height": 1000})
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(SURFACE) > 200, "a dark screen prints on white"
    assert page.evaluate(INK) < 60
    if name != "benchmark":  # whose rows hold a text that nothing can break
        assert page.evaluate("document.documentElement.scrollWidth") <= 690
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_charts_are_where_their_numbers_say(opened: Open) -> None:
    page = opened(retrieved())
    kept = page.locator("tr.kept .middle").first.bounding_box()
    line = page.locator("tr.kept .reference").first.bounding_box()
    assert kept is not None and line is not None
    assert kept["x"] > line["x"], "faster than the baseline is to its right"
    roofs = page.locator("svg.roofline")
    assert roofs.count() == 2
    before, after = (roofs.first.locator(f"circle.{kind}").bounding_box() for kind in ("before", "after"))
    assert before is not None and after is not None
    assert after["y"] < before["y"]
    assert page.locator("svg.nest").first.is_visible()


def test_a_plot_follows_the_colours_of_the_page(opened: Open) -> None:
    colour = "getComputedStyle(document.querySelector('svg.plot text')).fill.match(/\\d+/g).map(Number)[0]"
    html = benchmark()
    assert opened(html).evaluate(colour) < 60
    assert opened(html, color_scheme="dark").evaluate(colour) > 200
