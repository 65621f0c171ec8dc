"""What is on the page, read from its text."""

from __future__ import annotations

import base64
import itertools
import json
import re
import zlib
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from report.explore.maps import lattice, mapped, record

from gnnperf.report.explore import MappedNest, make_page
from gnnperf.schedules.recipes import Recipe

HOSTILE = '</script><b onclick="x">&<!--<script>'


class Elements(HTMLParser):
    """Start tags with their attributes, and the text of the element `data`."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=False)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, text: str) -> None:
        if self.tags and self.tags[-1][1].get("id") == "data":
            self.data += text


def read(html: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The data of a page: that of all nests, and the details of each."""
    data = json.loads(Elements(html).data)
    packed = (zlib.decompress(base64.b64decode(chunk)) for chunk in data["details"])
    return data, [nest for chunk in packed for nest in json.loads(chunk)]


def page(nests: list[MappedNest]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return read(make_page(nests, lattice(len(nests)), "an encoder").html)


def test_every_nest_has_its_figures() -> None:
    fast, slow = Recipe(order="panel", pack="q"), Recipe(order="dot")
    best = [record(12.345678, fast), record(0.5, slow), None]
    nests = mapped(["gemm", "softmax", "gemm"], ["linalg", "softmax", "linalg"], best)
    data, details = page(nests)
    columns = data["columns"]
    assert [data["kernels"][i] for i in columns["kernel"]] == ["gemm", "softmax", "gemm"]
    assert [data["families"][i] for i in columns["family"]] == ["linalg", "softmax", "linalg"]
    assert [data["schedules"][i] for i in columns["schedule"]] == [fast.describe(), slow.describe(), ""]
    groups = [data["groups"][i] for i in columns["group"]]
    assert groups == ["panel order, packed", "none beats the baseline", "not measured"]
    assert data["recipe_groups"] == 1
    assert columns["speedup"] == [12.35, 0.5, None]
    assert [nest["digest"] for nest in details] == [nest.nest.digest for nest in nests]
    assert [tuple(map(tuple, d["picture"])) for d in details] == [n.picture.rows for n in nests]
    assert [d["best"] and d["best"]["gains"] for d in details] == [True, False, None]
    assert details[0]["best"]["runtime_s"] == pytest.approx(1 / 12.345678, rel=1e-3)
    assert data["measurements"] == 6
    assert data["devices"] == ["a CPU (cpu/x86_64/avx512)"]


def test_neighbours_are_those_of_the_space_and_not_of_the_map() -> None:
    nests = mapped([f"kernel {number}" for number in range(150)])
    _, details = page(nests)
    rows = np.stack([nest.embedding for nest in nests]).astype(np.float64)
    everything = 1 - rows @ rows.T
    np.fill_diagonal(everything, np.inf)
    for i, nest in enumerate(details):
        near, distances = zip(*nest["neighbours"], strict=True)
        order = np.argsort(everything[i])[:8]
        assert list(near) == order.tolist()
        assert distances == pytest.approx(everything[i][order], abs=2e-6)


def test_places_keep_their_proportions() -> None:
    nests = mapped(["a", "b", "c"])
    places = np.array([[-3.0, 10.0], [5.0, 10.0], [1.0, 12.0]])
    columns = read(make_page(nests, places, "an encoder").html)[0]["columns"]
    assert columns["x"] == [0, 65535, 32768]
    assert columns["y"] == [0, 0, 16384]


def test_one_nest_makes_a_page() -> None:
    data, (only,) = page(mapped(["gemm"]))
    assert (data["columns"]["x"], data["columns"]["y"], only["neighbours"]) == ([0], [0], [])


def test_what_a_name_holds_stays_text() -> None:
    nests = mapped([HOSTILE], [HOSTILE])
    html = make_page(nests, lattice(1), "an encoder").html
    elements = Elements(html)
    assert [tag for tag, _ in elements.tags].count("script") == 2
    assert "b" not in [tag for tag, _ in elements.tags]
    data, _ = read(html)
    assert data["kernels"] == data["families"] == [HOSTILE]


def test_the_page_needs_nothing_else() -> None:
    html = make_page(mapped(["gemm"]), lattice(1), "an encoder").html
    for tag, attributes in Elements(html).tags:
        assert tag not in ("link", "img", "iframe"), attributes
        assert not {"src", "href"} & attributes.keys(), attributes
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


# Machado, Oliveira and Fernandes (2009), severity 1: what linear RGB becomes for dichromats.
VISIONS = {
    "trichromat": np.eye(3),
    "protanope": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranope": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    ),
    "tritanope": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]]
    ),
}
# Ottosson's OKLab (2020), from linear RGB by way of cone responses.
CONES = np.array(
    [[0.412221, 0.536333, 0.051446], [0.211903, 0.6807, 0.107397], [0.088302, 0.281719, 0.629979]]
)
OKLAB = np.array(
    [[0.210454, 0.793618, -0.004072], [1.977998, -2.428592, 0.450594], [0.025904, 0.782772, -0.808676]]
)


def linear(colour: str) -> np.ndarray:
    values = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize("vision", VISIONS)
def test_colours_are_told_apart(vision: str) -> None:
    style = (files("gnnperf.report.explore") / "assets" / "page.css").read_text()
    palettes = re.findall(r"--palette: ([^;]*);", style)
    assert len(palettes) == 2, "light and dark"
    for palette in palettes:
        colours = np.array([linear(colour) for colour in palette.split(", ")])
        seen = np.clip(colours @ VISIONS[vision].T, 0, 1)
        lab = np.cbrt(seen @ CONES.T) @ OKLAB.T
        assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(lab, 2)) > 0.13
