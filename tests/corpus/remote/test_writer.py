"""Packs are written without a GPU and without its compiler, and go on where they stopped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gnnperf.corpus.config import PackConfig, load_config
from gnnperf.corpus.remote import PackWriter, build
from gnnperf.devices import find_gpus
from gnnperf.errors import BuildError, InputError
from gnnperf.frontends.tvm.cuda_spaces import CUDA_CORES, TENSOR_CORES
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.target import cuda_target
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.measure.remote import Pack

tvm = import_tvm()
HALF = TvmWorkload("matmul", {"m": 64, "n": 64, "k": 64, "dtype": "float16"})
SHIPPED = Path(__file__).parents[3] / "configs" / "corpus" / "cuda.yaml"


def load(path: Path) -> PackConfig:
    found = load_config(path)
    assert isinstance(found, PackConfig)
    return found


def no_nvcc() -> bool:
    return False


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pack")
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gnnperf.corpus.remote.build.has_nvcc", no_nvcc)
        patch.setattr("gnnperf.corpus.remote.writer.has_nvcc", no_nvcc)
        config = PackConfig("small", (HALF,), schedules=4, together=2)
        for _ in range(2):  # the second time, there is nothing left to do
            PackWriter(folder, config, cuda_target("sm_80"), report=said.append).run()
        with pytest.raises(InputError, match="expected a pack for sm_90a"):
            PackWriter(folder, config, cuda_target("sm_90a"), report=said.append).run()
    assert said == [f"1/1 {HALF.name}: 4 schedules, 4 built"]
    return folder


def test_a_pack_holds_schedules_of_both_kinds(written: Path) -> None:
    pack = Pack.read(written)
    assert (pack.arch, pack.header["machine_code"]) == ("sm_80", False)
    (workload,) = pack.workloads
    assert [line["origin"] for line in workload.schedules.values()] == [CUDA_CORES] * 2 + [TENSOR_CORES] * 2
    assert workload.about["arguments"] == [[[64, 64], t] for t in ("float16", "float16", "float32")]
    assert all(line["schedule"]["trace"] for line in workload.schedules.values())


def test_libraries_hold_cuda_source_by_the_names_of_the_schedules(written: Path) -> None:
    (workload,) = Pack.read(written).workloads
    for line in workload.schedules.values():
        content = (written / line["library"]).read_bytes()
        assert f"{line['function']}_kernel".encode() in content
        assert (b"wmma" in content) == (line["origin"] == TENSOR_CORES)
    for name in ("reference", "baseline_library"):
        assert (written / workload.about[name]).stat().st_size > 0


def test_a_pack_brings_what_measures_it(written: Path) -> None:
    there = {str(path.relative_to(written)) for path in written.rglob("*") if path.is_file()}
    assert {
        "program/measure.py", "program/gnnperf/measure/remote/worker.py", "runtime/libtvm_runtime.so",
        "runtime/libtvm_runtime_cuda.so",
    } <= there  # fmt: skip


@pytest.mark.skipif(bool(find_gpus()[0]), reason="there is a GPU here")
def test_what_a_pack_brings_is_enough_to_start(written: Path, tmp_path: Path) -> None:
    alone = "import sys; sys.modules.update(dict.fromkeys(('torch', 'tvm', 'dace', 'zstandard', 'click')));"
    script = written / "program" / "measure.py"
    alone += f"sys.argv = [{str(script)!r}, '-o', 'log']; sys.path.insert(0, {str(script.parent)!r});"
    alone += f"import runpy; runpy.run_path({str(script)!r})"
    done = subprocess.run([sys.executable, "-c", alone], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("measure.py: expected an NVIDIA GPU, got none: ")


def test_what_does_not_build_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = cuda_target("sm_80")
    with pytest.raises(BuildError, match=r"AttributeError: .*with_attr"):
        build.build_library({"main": "no function"}, target, tmp_path, "a.so")
    monkeypatch.setattr(build, "BUILD_S", 1e-3)
    with pytest.raises(BuildError, match=r"took longer than 0.001 s"):
        build.build_library({"main": HALF.build()["main"]}, target, tmp_path, "a.so")
    assert not list(tmp_path.glob("a.so"))


def test_the_shipped_configuration_is_enough_for_a_corpus() -> None:
    config = load(SHIPPED)
    assert len(config.workloads) >= 20 and len(config.workloads) * config.schedules >= 2000
    assert {w.split for w in config.workloads} == {"training", "held_out"}
    assert any(w.params.get("dtype") == "float16" for w in config.workloads)
    assert [w.kind for w in config.only(["softmax"]).workloads] == ["softmax"] * 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("together: 0", "together: expected an integer from 1 to 256, got 0"),
        ("schedules: many", "schedules: expected an integer"),
        ("batch: 4", "unknown setting 'batch'"),
    ],
)
def test_settings_are_checked(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "pack.yaml"
    file.write_text(f"kind: pack\n{text}\nworkloads:\n  - {{kind: softmax, m: 4, n: 4}}\n")
    with pytest.raises(InputError, match=message):
        load(file)
