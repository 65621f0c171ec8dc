"""`--report FILE.html`: refused early if it cannot be written, written last, never instead of the result."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from report.made_up import CPU, graph, nest, retrieval

from gnnperf.cli.eval import BENCHMARKS
from gnnperf.cli.eval import eval as evaluate
from gnnperf.cli.main import gnnperf, run
from gnnperf.cli.output import Report, Verb
from gnnperf.cli.retrieval_view import page_of_retrieval
from gnnperf.devices import DeviceSpec
from gnnperf.errors import GnnperfError, InputError, MeasureError

WITH_PAGES = ("retrieve", "tune", "propose", "predict", "explore")


def command(page: Any, failure: GnnperfError | None = None) -> click.Command:
    """A verb that has found something."""

    @click.command(cls=Verb, page=True)
    def found() -> Report:
        return Report({"found": 1}, "found", failure, page)

    return found


def options(verb: click.Command) -> set[str]:
    return {name for parameter in verb.params for name in parameter.opts}


def test_verbs_with_pages() -> None:
    context = click.Context(gnnperf)
    for name in WITH_PAGES:
        verb = gnnperf.get_command(context, name)
        assert verb is not None and "--report" in options(verb), name
    for name in BENCHMARKS:
        benchmark = evaluate.get_command(context, name)
        assert benchmark is not None and "--report" in options(benchmark), name


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("", "got the folder"),
        ("no/such/page.html", "No such file or directory"),
        ("file/page.html", "Not a directory"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_any_work(
    where: str, message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    # The kernel does not exist: that would be found out next.
    for verb in (["retrieve", "none.py:none"], ["predict", "none.py:none"], ["eval", "transfer"]):
        assert run([*verb, "--report", str(tmp_path / where)]) == 2
        (line,) = capfd.readouterr().err.splitlines()
        assert line.startswith("gnnperf: --report: expected a file")
        assert message in line


def test_the_page_is_written_when_the_result_has_been_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told: list[str] = []

    def page() -> str:
        told.append(capfd.readouterr().out)
        print("what a library says")
        return "<!doctype html>é"

    path = tmp_path / "page.html"
    command(page)(["--report", str(path), "--json"], standalone_mode=False)
    said = capfd.readouterr()
    assert [json.loads(text) for text in told] == [{"found": 1}]
    assert said.out == ""
    assert "what a library says" in said.err and f"wrote {path}" in said.err
    assert path.read_text(encoding="utf-8") == "<!doctype html>é"
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_a_page_that_fails_does_not_take_the_result_along(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(path: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", no_room)
    with pytest.raises(GnnperfError, match=r"cannot write .*page.html: No space left on device"):
        command(lambda: "")(["--report", str(tmp_path / "page.html"), "--json"], standalone_mode=False)
    assert json.loads(capfd.readouterr().out) == {"found": 1}


def test_what_went_wrong_is_told_beside_the_page(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    with pytest.raises(InputError, match="something else"):
        command(lambda: "here", InputError("something else"))(["--report", str(path)], standalone_mode=False)
    assert path.read_text() == "here"


def test_predictions_and_configurations_have_pages(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GNNPERF_DATA", raising=False)
    path = tmp_path / "page.html"
    for arguments in (
        ["predict", "linear:M=512,N=512,K=512", "--gpu", "l4"],
        ["predict", "gemm:MWG=64,NWG=64,M=1024", "--gpu", "l4"],
        ["propose", "gemm", "--gpu", "l4", "-k", "2"],
    ):
        assert run([*arguments, "--report", str(path)]) == 0, capfd.readouterr().err
        html = path.read_text(encoding="utf-8")
        assert "NVIDIA L4" in html
        assert all(f'<svg class="{picture}"' in html for picture in ("span", "nest", "roofline"))
        path.unlink()


def test_a_table_has_no_page(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "rows.parquet"
    table.write_bytes(b"")
    page = tmp_path / "page.html"
    arguments = ["--table", str(table), "-o", str(tmp_path / "out.parquet"), "--report", str(page)]
    assert run(["predict", *arguments]) == 2
    assert "--report: a --table takes none" in capfd.readouterr().err


def test_a_machine_that_cannot_be_probed_has_no_rooflines(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(refresh: bool) -> DeviceSpec:
        raise MeasureError("no compiler")

    found, graphs = retrieval(nest("gemm")), {graph("gemm").digest: graph("gemm")}
    monkeypatch.setattr("gnnperf.devices.probe", lambda refresh: CPU)
    assert 'class="roofline"' in page_of_retrieval(found, graphs)
    monkeypatch.setattr("gnnperf.devices.describe_host", lambda: replace(CPU, bandwidth_gbps=None))
    monkeypatch.setattr("gnnperf.devices.probe", fail)
    html = page_of_retrieval(found, graphs)
    assert 'class="roofline"' not in html and 'class="nest"' in html
    assert "no rooflines: no compiler" in capfd.readouterr().err


def test_peaks_that_a_nest_beats_are_measured_again(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, graphs = retrieval(nest("gemm")), {graph("gemm").digest: graph("gemm")}
    low = replace(CPU, peak_gflops_fp32=1e-3, peak_gflops_fp64=1e-3)
    asked: list[bool] = []

    def probe(refresh: bool) -> DeviceSpec:
        asked.append(refresh)
        return replace(CPU, name="measured again") if refresh else low

    monkeypatch.setattr("gnnperf.devices.probe", probe)
    assert "measured again" in page_of_retrieval(found, graphs)
    assert asked == [False, True]
    assert "a nest beats the peaks of this machine" in capfd.readouterr().err
