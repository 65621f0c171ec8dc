"""`gnnperf propose KERNEL --gpu NAME` and `gnnperf eval gpu-schedules`."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import yaml
from helpers import gpu_world

from gnnperf.cli.main import run
from gnnperf.frontends.gpu_kernels.description import KERNELS
from gnnperf.frontends.gpu_kernels.tables import load_tables
from gnnperf.nn import save_checkpoint
from gnnperf.nn.demand import ANY, DemandBundle
from gnnperf.training.demand import DemandFitSettings, fit_demand


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with measurements, and with networks for them in `bundle`."""
    folder = tmp_path_factory.mktemp("world")
    path = gpu_world.write(
        folder / "tunable_kernels.parquet", gpu_world.rows(("pnpoly",), gpu_world.GPUS[:3], 40)
    )
    tables = load_tables(path)
    networks = {
        name: [fit_demand(tables, own=name != ANY, settings=DemandFitSettings(steps=60))]
        for name in ("pnpoly", ANY)
    }
    widths = {name: {"50": 0.1, "80": 0.3, "95": 0.6} for name in networks}
    save_checkpoint(folder / "bundle", DemandBundle(networks, widths))
    return folder


def propose(world: Path, *arguments: str) -> int:
    return run(["propose", *arguments, "--checkpoint", str(world / "bundle")])


def test_configurations_for_kernel_tuner(
    world: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "start.json"
    arguments = ["pnpoly", "--gpu", "L4", "-k", "3", "--data", str(world), "-o", str(output), "--json"]
    assert propose(world, *arguments, "--set", "points=1000000", "--gpu", "L4") == 0
    document = json.loads(capfd.readouterr().out)
    assert document["device"] == "NVIDIA L4"
    assert document["spaces"] == ["pnpoly_made_up"]
    written = json.loads(output.read_text())
    assert written["problem_size"] == [1000000, 600]
    assert written["start"] == [list(c.values()) for c in document["configurations"]]
    assert written["predicted_ms"] == document["prediction"]["runtime_ms"]


SCALE = (
    "name: scale\nsizes: {N: 1048576}\nparameters: {threads: [THREADS], items: [ITEMS]}\n"
    "buffers: {x: {dtype: float32, shape: [N]}, y: {dtype: float32, shape: [N]}}\n"
    "loops:\n"
    '- {axis: i, extent: "cdiv(N, threads * items)", bind: block.x}\n'
    "- {axis: i, extent: threads, bind: thread.x, step: 1}\n"
    "- {axis: i, extent: items, unroll: true, step: threads}\n"
    "compute: ['y[i] = 2 * x[i]']\n"
)
"""A kernel's description, but for values of its parameters."""


def test_a_described_kernel_that_nobody_measured(
    world: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GNNPERF_DATA", raising=False)
    (tmp_path / "scale.yaml").write_text(SCALE.replace("THREADS", "128, 256").replace("ITEMS", "1, 2, 4"))
    assert propose(world, str(tmp_path / "scale.yaml"), "--gpu", "h200") == 0
    said = capfd.readouterr()
    assert "scale on NVIDIA H200" in said.out
    assert "not measured anywhere" in said.out
    assert "no measurements of other GPUs" in said.err


def test_blocks_that_no_gpu_can_run_are_not_proposed(
    world: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GNNPERF_DATA", raising=False)
    text = SCALE.replace("ITEMS", "1, 2")
    path = tmp_path / "scale.yaml"
    path.write_text(text.replace("THREADS", "256, 2048"))
    assert propose(world, str(path), "--gpu", "h200", "-k", "4", "--json") == 0
    document = json.loads(capfd.readouterr().out)
    assert [c["threads"] for c in document["configurations"]] == [256, 256]
    assert document["candidates"] == 2
    path.write_text(text.replace("THREADS", "2048, 4096"))
    assert propose(world, str(path), "--gpu", "h200") == 2
    assert "scale: no configuration fits on NVIDIA H200" in capfd.readouterr().err
    path.write_text(text.replace("THREADS", "128, 256"))
    assert propose(world, str(path), "--gpu", "h200", "-k", "4") == 0
    assert "in all of them" not in capfd.readouterr().out  # they have nothing in common


def test_limits_of_a_description_hold_for_what_other_gpus_lend(
    world: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole = KERNELS / "pnpoly.yaml"
    description = yaml.safe_load(whole.read_text())
    description["parameters"]["block_size_x"] = [64, 128]
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(description))
    arguments = ["--gpu", "L4", "-k", "20", "--data", str(world), "--json"]
    sizes = []
    for kernel in ("pnpoly", str(tmp_path / "mine.yaml")):
        assert propose(world, kernel, *arguments) == 0
        found = json.loads(capfd.readouterr().out)["configurations"]
        sizes.append({c["block_size_x"] for c in found})
    assert not sizes[0] <= {64, 128}
    assert sizes[1] <= {64, 128}


def test_unknown_parameters_of_data(world: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = gpu_world.rows(("pnpoly",), gpu_world.GPUS[:1], 6)
    rows[1]["params"] = json.dumps({**json.loads(rows[1]["params"]), "clock": 900})
    path = gpu_world.write(tmp_path / "tunable_kernels.parquet", rows)
    arguments = ["pnpoly", "--gpu", "L4", "--data", str(path)]
    assert propose(world, *arguments) == 2
    assert "has no parameter 'clock'; add it, or leave it out with --ignore clock" in capfd.readouterr().err
    assert propose(world, *arguments, "--ignore", "clock") == 0
    assert "measured elsewhere: pnpoly_made_up" in capfd.readouterr().out


def test_a_description_is_checked_against_what_was_measured(
    world: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runtimes that physics estimates, and the same in the order of a shuffle."""
    rows = gpu_world.rows(("pnpoly",), gpu_world.GPUS[:1], 100)
    times = [row["time_ms"] for row in rows]
    shuffled = random.Random(0).sample(times, len(times))
    rows += [{**row, "space": "shuffled", "time_ms": t} for row, t in zip(rows, shuffled, strict=True)]
    table = gpu_world.write(tmp_path / "t.parquet", rows)
    assert propose(world, "--check", "pnpoly", str(table), "--json") == 0
    document = json.loads(capfd.readouterr().out)
    assert document["k"] == 5
    good, bad = document["tables"]
    assert (good["space"], bad["space"]) == ("pnpoly_made_up", "shuffled")
    assert good["rank_correlation"] > 0.5 > abs(bad["rank_correlation"])
    assert good["better_than_random"] and not bad["better_than_random"]
    assert good["first"] <= good["best"] <= 1
    monkeypatch.setenv("GNNPERF_DATA", str(world))  # for proposals: it is not asked for
    assert propose(world, "pnpoly", str(table), "--check") == 0
    assert "better than random on 1 of 2 tables: elsewhere, do not rely on" in capfd.readouterr().out


def test_what_kernel_tuner_wrote_is_data(
    world: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    keys = ["block_size_x", "tile_size", "between_method", "use_method"]
    ran = [(64, 1, 0, 0), (128, 2, 1, 0)]
    entries = [(dict(zip(keys, v, strict=True)), 5.0 + i) for i, v in enumerate(ran)]
    cache = {
        "device_name": "NVIDIA RTX A4000", "kernel_name": "cn_pnpoly", "problem_size": 20000000,
        "tune_params_keys": keys, "tune_params": {}, "objective": "time",
        "cache": {str(i): {**c, "time": ms} for i, (c, ms) in enumerate(entries)},
    }  # fmt: skip
    (tmp_path / "cache.json").write_text(json.dumps(cache))
    arguments = ["pnpoly", "--gpu", "L4", "-k", "1", "--json", "--data", str(tmp_path / "cache.json")]
    assert propose(world, *arguments) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["spaces"] == ["cache"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gemm"], "expected --gpu; `gnnperf devices list` shows those that are known"),
        (["gemm", "{folder}/tunable_kernels.parquet"], "expected --check with"),
        (["gemm", "--gpu", "l4", "--gpu", "t4"], "expected one --gpu, got l4, t4; propose for one at a time"),
        (["--check", "pnpoly"], "expected KERNEL and a TABLE that was measured, got KERNEL alone"),
        (
            ["--check", "pnpoly", "{folder}/tunable_kernels.parquet", "--gpu", "l4"],
            "--gpu: --check takes none: expected no such option; leave it out",
        ),
        (
            ["--check", "gemm", "{folder}/tunable_kernels.parquet"],
            "expected measured rows of the kernel gemm, got none",
        ),
        (["fft", "--gpu", "l4"], "expected one of convolution2d"),
        (["gemm", "--gpu", "voodoo"], "no device 'voodoo'"),
        (["gemm", "--gpu", "host"], "expected a GPU, got a cpu"),
        (["gemm", "--gpu", "l4", "--set", "Q=3"], "unknown size 'Q'; known: M, N, K"),
        (
            ["gemm", "--gpu", "l4", "-o", "{folder}/none/start.json"],
            "expected a file to write, in a folder that exists",
        ),
        (
            ["gemm", "--gpu", "l4", "--data", "/nowhere"],
            "expected tunable_kernels.parquet or a folder with it",
        ),
    ],
)
def test_mistakes_are_one_line(
    world: Path, arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert propose(world, *(a.format(folder=world) for a in arguments)) == 2
    said = capfd.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert message in said[0]


def test_the_benchmark(world: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["eval", "gpu-schedules", "--quick", "--seeds", "1", "--data", str(world), "--json"]
    page = tmp_path / "page.html"
    assert run([*arguments, "-o", str(tmp_path / "out"), "--report", str(page)]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["benchmark"] == "gpu-schedules"
    assert 0 < document["figures"]["heldout_gpu_top5"] <= 1
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {"gpu-schedules.json"} | {
        f"gpu-schedules{r}{s}" for r in ("", "-runtime", "-distance") for s in (".png", ".svg")
    }
    html = page.read_text(encoding="utf-8")
    assert html.count('class="plot"') == 3 and "heldout gpu top5" in html


def test_the_released_networks_serve_without_measurements(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GNNPERF_DATA", raising=False)
    assert run(["propose", "pnpoly", "--gpu", "l4", "-k", "2", "--json"]) == 0
    said = capfd.readouterr()
    document = json.loads(said.out)
    assert len(document["configurations"]) == 2
    assert document["spaces"] == ["pnpoly_bat", "pnpoly_ktt"]  # measurements are released with them
    assert all(0.1 < ms < 1000 for ms in document["prediction"]["runtime_ms"])
    assert said.err == ""
