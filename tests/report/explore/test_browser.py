"""The page in a real browser, opened from a file: it is drawn, it answers, and nothing goes wrong on it."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
from helpers.browsing import Open
from playwright.sync_api import Page, expect
from report.explore.maps import lattice, mapped, record

from gnnperf.report.explore import MappedNest, make_page
from gnnperf.schedules.recipes import Recipe

pytestmark = pytest.mark.needs("chromium")

PHONE = {"width": 390, "height": 844}
KERNELS = [f"kernel_{number}" for number in range(20)] + ["gemm", "softmax", "spmm", "conv2d"]
ORDERS = ("row", "dot", "panel")


@pytest.fixture
def opened(opened: Open) -> Open:
    """`opened(nests, **context)`: their map."""
    return lambda nests, **options: opened(
        make_page(nests, lattice(len(nests)), "an encoder").html, **options
    )


def nests() -> list[MappedNest]:
    """24 nests of 6 families; the speedups are those of their numbers, the last two were never measured."""
    best = [record(1.5 + i, Recipe(order=ORDERS[i % 3])) for i in range(len(KERNELS) - 2)]
    return mapped(KERNELS, [f"family_{i % 6}" for i in range(len(KERNELS))], [*best, None, None])


def at(page: Page, nest: int) -> tuple[float, float]:
    """Where a nest is on the page."""
    x, y = page.evaluate("i => gnnperf.positionOf(i)", nest)
    box = page.locator("#overlay").bounding_box()
    assert box is not None
    return box["x"] + x, box["y"] + y


def pixels(page: Page, canvas: str) -> np.ndarray:
    """RGBA of what a canvas shows after the next frame, u8[height, width, 4]; nothing drawn is 0, 0, 0, 0."""
    picture = page.evaluate(
        """async (id) => {
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          const shown = document.getElementById(id);
          const canvas = new OffscreenCanvas(shown.width, shown.height);
          const copy = canvas.getContext("2d", { willReadFrequently: true });
          copy.drawImage(shown, 0, 0);
          const bytes = copy.getImageData(0, 0, shown.width, shown.height).data;
          const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
          return [shown.height, shown.width, btoa(text)];
        }""",
        canvas,
    )
    height, width, text = picture
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4)


def colours(page: Page) -> np.ndarray:
    """RGBA in the middle of every nest, u8[n, 4]."""
    places = page.evaluate("gnnperf.nests.map(({ index }) => gnnperf.positionOf(index))")
    density = page.evaluate("devicePixelRatio")
    x, y = np.round(np.array(places) * density).astype(int).T
    return pixels(page, "points")[y, x]


def names(page: Page) -> list[str]:
    """Kernels of the listed neighbours."""
    numbers = page.locator(".neighbours button").evaluate_all("all => all.map(one => +one.dataset.nest)")
    return [KERNELS[number] for number in numbers]


def nearest(chosen: int) -> list[int]:
    rows = np.stack([nest.embedding for nest in nests()]).astype(np.float64)
    distances = 1 - rows @ rows[chosen]
    distances[chosen] = np.inf
    return np.argsort(distances)[:8].tolist()


def test_every_nest_is_drawn_and_its_family_hides_it(opened: Open) -> None:
    page = opened(nests())
    assert page.locator("#summary").inner_text() == "24 nests · 6 families · 66 measurements"
    page.get_by_text("Hide all").click()
    assert not colours(page).any()
    expect(page.locator("#shown")).to_have_text("0 of 24 nests shown")
    page.locator("#legend li button", has_text="family_2").click()
    assert np.flatnonzero(colours(page)[:, 3]).tolist() == [2, 8, 14, 20]
    assert page.evaluate("i => gnnperf.nestAt(...gnnperf.positionOf(i))", 3) == -1
    page.get_by_text("Show all").click()
    assert (colours(page)[:, 3] == 255).all()
    assert page.evaluate("i => gnnperf.nestAt(...gnnperf.positionOf(i))", 3) == 3


def test_hovering_shows_the_nest(opened: Open) -> None:
    page = opened(nests())
    for nest in (20, 21, 5):
        page.mouse.move(*at(page, nest))
        card = page.locator("#card")
        expect(card.locator("h3 span")).to_have_text(KERNELS[nest])
        expect(card.locator("h3 b")).to_have_text(f"{1.5 + nest:.{2 if nest < 9 else 1}f}x")
        expect(card.locator(".words")).to_contain_text(f"{ORDERS[nest % 3]} order")
        if KERNELS[nest] == "gemm":
            expect(card.locator("text.statement")).to_have_text(["C[i, j] += A[i, k] * B[k, j]"])
            expect(card.locator("text.iterator")).to_have_text(["i", "k", "j"])
    page.mouse.move(*at(page, 23))
    expect(page.locator("#card h3 b")).to_have_text("not measured")
    box = page.locator("#overlay").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 3, box["y"] + 3)
    expect(page.locator("#card")).to_be_hidden()


def test_a_click_lists_the_neighbours_and_marks_them(opened: Open) -> None:
    page = opened(nests())
    assert not pixels(page, "overlay").any()
    page.mouse.click(*at(page, 7))
    expect(page.locator(".neighbours li")).to_have_count(8)
    assert names(page) == [KERNELS[i] for i in nearest(7)]
    ring = pixels(page, "overlay")
    for nest in (7, *nearest(7)):
        x, y = map(round, page.evaluate("i => gnnperf.positionOf(i)", nest))
        assert ring[y - 12 : y + 13, x - 12 : x + 13].any()
    rows = np.stack([nest.embedding for nest in nests()]).astype(np.float64)
    shown = [float(text) for text in page.locator(".neighbours .distance").all_inner_texts()]
    assert shown == pytest.approx([1 - rows[7] @ rows[i] for i in nearest(7)], abs=1e-4)
    expect(page.locator("#panel")).to_contain_text("with dace-auto, the best of 3 measurements, on a CPU")

    page.locator(".neighbours button").first.click()
    second = nearest(7)[0]
    expect(page.locator("#panel h2 span")).to_have_text(KERNELS[second])
    assert names(page) == [KERNELS[i] for i in nearest(second)]
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_contain_text("How to read this map")


def test_colours_follow_the_choice(opened: Open) -> None:
    page = opened(nests())
    by_family = colours(page)
    assert (by_family[0] == by_family[6]).all()
    assert (by_family[0] != by_family[1]).any()
    page.get_by_text("Best schedule", exact=True).first.click()
    expect(page.locator("#legend .name")).to_have_text(
        ["row order", "dot order", "panel order", "not measured"]
    )
    by_recipe = colours(page)
    assert (by_recipe[0] == by_recipe[3]).all()
    assert (by_recipe[0] != by_recipe[1]).any()
    page.get_by_text("Speedup", exact=True).click()
    expect(page.locator("#legend svg.scale")).to_be_visible()
    expect(page.locator("#legend")).to_contain_text("Median 12.5x, largest 22.5x.")
    expect(page.locator("#legend")).to_contain_text("2 nests without a measurement")
    by_speedup = colours(page)
    brightness = by_speedup[:, :3].sum(axis=1, dtype=int)
    assert brightness[0] > brightness[10] > brightness[21], "on a light page, the darker the faster"


def test_search_finds_and_chooses(opened: Open) -> None:
    page = opened(nests())
    page.keyboard.press("/")
    page.keyboard.type("family_3 kernel_1")
    expect(page.locator("#results button > span")).to_have_text(["kernel_15"])
    assert np.flatnonzero(colours(page)[:, 3] > 128).tolist() == [15]
    page.keyboard.press("Enter")
    expect(page.locator("#panel h2 span")).to_have_text("kernel_15")
    page.locator("#search").fill("no such kernel")
    expect(page.locator("#results")).to_have_text("Nothing matches")


def test_the_keyboard_does_what_the_mouse_does(opened: Open) -> None:
    page = opened(nests())
    page.locator("#overlay").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#card")).to_be_visible()
    first = page.locator("#card h3 span").inner_text()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#card h3 span")).not_to_have_text(first)
    second = page.locator("#card h3 span").inner_text()
    expect(page.locator("#spoken")).to_contain_text(second)
    (x, _), (other_x, _) = at(page, KERNELS.index(first)), at(page, KERNELS.index(second))
    assert other_x > x
    page.keyboard.press("Enter")
    expect(page.locator("#panel h2 span")).to_have_text(second)
    expect(page.locator("#spoken")).to_contain_text(f"Nearest to {second}: ")
    page.locator(".neighbours button").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#panel h2 span")).not_to_have_text(second)
    assert page.evaluate("document.activeElement.className") == "close", "the focus stays in the panel"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "overlay"
    before = at(page, 0)
    page.keyboard.press("+")
    assert at(page, 0) != before
    page.keyboard.press("0")
    assert at(page, 0) == before


def test_zooming_keeps_what_is_under_the_pointer_and_dragging_moves_it(opened: Open) -> None:
    page = opened(nests())
    (x, y), corner = at(page, 9), at(page, 0)
    page.mouse.move(x, y)
    page.mouse.wheel(0, -400)
    page.wait_for_function("before => gnnperf.positionOf(0)[0] < before - 50", arg=corner[0])
    assert at(page, 9) == pytest.approx((x, y), abs=1.5)  # pointers are at whole pixels
    page.mouse.down()
    page.mouse.move(x + 40, y - 25, steps=4)
    page.mouse.up()
    assert at(page, 9) == pytest.approx((x + 40, y - 25), abs=3)
    expect(page.locator(".neighbours")).to_have_count(0)  # it was no click


def test_names_are_text(opened: Open) -> None:
    hostile = '</script><b id="hostile">&amp;<img src=x onerror=alert(1)>'
    page = opened(mapped([hostile, "gemm"], [hostile, "linalg"]))
    page.mouse.click(*at(page, 0))
    expect(page.locator("#panel h2 span")).to_have_text(hostile)
    expect(page.locator("#legend .name").first).to_have_text(hostile)
    assert page.locator("#hostile, img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(opened: Open, scheme: Any) -> None:
    page = opened(nests(), color_scheme=scheme)
    surface = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
    assert (page.evaluate(surface) > 128) == (scheme == "light")
    before = colours(page)
    page.locator("#theme").click()
    assert (page.evaluate(surface) > 128) == (scheme == "dark")
    assert (colours(page) != before).any()


def test_a_phone(opened: Open) -> None:
    page = opened(nests(), viewport=PHONE, device_scale_factor=2, is_mobile=True, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert (colours(page)[:, 3] == 255).all()
    page.touchscreen.tap(*at(page, 11))
    expect(page.locator("#panel h2 span")).to_have_text(KERNELS[11])
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_twenty_thousand_nests(opened: Open) -> None:
    count = 20_000
    kernels = [f"kernel_{number}" for number in range(count)]
    best = record(2.0)
    page = opened(mapped(kernels, [f"family_{number % 70}" for number in range(count)], [best] * count))
    assert page.evaluate("gnnperf.nests.length") == count
    page.locator("#legend li button").last.wait_for()
    found = page.evaluate("gnnperf.nests.map(({ index }) => gnnperf.nestAt(...gnnperf.positionOf(index)))")
    assert found == list(range(count))
    assert colours(page)[:, 3].all()
    for nest in (0, 12_345, count - 1):
        page.mouse.move(*at(page, nest))
        expect(page.locator("#card h3 span")).to_have_text(kernels[nest])
    page.mouse.click(*at(page, 12_345))
    expect(page.locator(".neighbours li")).to_have_count(8)
