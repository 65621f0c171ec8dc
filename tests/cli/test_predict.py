from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import yaml

from gnnperf.cli.main import run
from gnnperf.devices import load_device


def document(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert run(["predict", *arguments, "--json"]) == 0
    result: dict[str, object] = json.loads(capfd.readouterr().out)
    return result


def refusal(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that bad input gets."""
    assert run(["predict", *arguments]) == 2
    said = capfd.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    return said.err


def test_one_operator_on_several_gpus(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    spec = {**load_device("l4").to_dict(), "name": "Mine", "aliases": ["mine"]}
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(spec))
    kernel = "linear:M=4096,N=4096,K=1024"
    found = document(capfd, kernel, "--gpu", "L4", "--gpu", "h200", "--gpu", str(path))["predictions"]
    assert isinstance(found, list)
    l4, h200, mine = found
    assert [p["device"] for p in found] == ["NVIDIA L4", "NVIDIA H200", "Mine"]
    assert l4["runtime_ms"] == mine["runtime_ms"] > h200["runtime_ms"]
    low, high = l4["intervals_ms"]["80%"]
    assert low < l4["runtime_ms"] < high
    assert run(["predict", kernel, "--gpu", "a10g"]) == 0
    shown = capfd.readouterr().out
    assert "80% interval" in shown
    assert "a10g: its boost_mhz is doubtful" in shown


def test_a_model(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(
        "import torch\n"
        "def mlp():\n"
        "    layers = torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)\n"
        "    return torch.nn.Sequential(*layers), (torch.randn(512, 64),)\n"
    )
    plain = document(capfd, f"{path}:mlp", "--gpu", "t4")
    fused = document(capfd, f"{path}:mlp", "--gpu", "t4", "--fused")
    assert (plain["operators"], fused["operators"]) == (3, 2)
    assert plain["predictions"][0]["runtime_ms"] > fused["predictions"][0]["runtime_ms"]  # type: ignore[index]


def test_dtypes(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    kernel = "linear:M=8192,N=4096,K=1024"
    plain, half = (
        document(capfd, kernel + more, "--gpu", "a100")["predictions"][0]  # type: ignore[index]
        for more in ("", ",dtype=fp16")
    )
    assert plain["runtime_ms"] > 4 * half["runtime_ms"]
    assert any("fp16, which was not measured" in remark for remark in half["remarks"])
    (same,) = document(capfd, kernel, "--gpu", "a100", "--dtype", "fp16")["predictions"]  # type: ignore[misc]
    assert same["runtime_ms"] == half["runtime_ms"]
    assert "got fp8" in refusal(capfd, kernel, "--gpu", "a100", "--dtype", "fp8")
    both = document(capfd, kernel, "--gpu", "a100", "--gpu", "h100", "--dtype", "fp8")["predictions"]
    assert isinstance(both, list) and "got fp8" in both[0]["objection"] and both[1]["runtime_ms"] > 0
    assert "expected a dtype out of fp64" in refusal(capfd, kernel, "--gpu", "a100", "--dtype", "half")
    row = {"op_family": "linear", "op": "linear", "device": "a100", "M": 8192, "N": 4096, "K": 1024, "B": 1}
    source, result = tmp_path / "rows.parquet", tmp_path / "out.parquet"
    rows = [{**row, "H": None, "dtype": dtype} for dtype in (None, "fp16")]
    pq.write_table(pa.Table.from_pylist(rows), source)
    done = document(capfd, "--table", str(source), "-o", str(result))
    assert done["remarks"] == [
        "1 rows are fp16, which was not measured: physics with the datasheet's peak, and wider intervals"
    ]
    times = pq.read_table(result)["predicted_ms"].to_pylist()
    assert times == pytest.approx([plain["runtime_ms"], half["runtime_ms"]])


def test_tables(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = [
        {"op_family": "linear", "op": "linear", "device": "ours", "B": 1, "M": 512, "N": 512, "K": 64},
        {"op_family": "softmax", "op": "softmax", "device": "Tesla T4", "B": 512, "H": 512},
        {"op_family": "pool", "op": "pool", "device": "Tesla T4", "B": 1, "H": 1},
    ]
    rows = [{**dict.fromkeys("BMNKH"), **row} for row in rows]
    source, result, devices = (tmp_path / name for name in ("rows.parquet", "out.parquet", "devices.yaml"))
    pq.write_table(pa.Table.from_pylist(rows), source)
    devices.write_text(yaml.safe_dump({"ours": "l4"}))
    table = ["--table", str(source), "-o", str(result)]
    done = document(capfd, *table, "--devices", str(devices))
    assert (done["rows"], done["predicted"]) == (3, 2)
    written = pq.read_table(result).to_pylist()
    assert all(row["lo_ms"] < row["predicted_ms"] < row["hi_ms"] for row in written[:2])
    assert written[2]["predicted_ms"] is None
    single = document(capfd, "linear:M=512,N=512,K=64", "--gpu", "l4")["predictions"]
    assert isinstance(single, list)
    assert single[0]["runtime_ms"] == pytest.approx(written[0]["predicted_ms"])
    assert run(["predict", *table]) == 2
    assert "no device 'ours'" in capfd.readouterr().err
    nowhere = tmp_path / "none" / "out.parquet"
    assert run(["predict", *table[:2], "-o", str(nowhere), "--devices", str(devices)]) == 2
    assert f"cannot write {nowhere}: " in capfd.readouterr().err


def test_rows_of_a_table_that_nothing_is_said_of(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """They cost the others nothing."""
    sizes = {"B": 16, "M": 512, "N": 512, "K": 64, "H": 512}
    wanted = [(gpu, family) for gpu in ("a100", "h100") for family in ("bmm", "attention", "softmax")]
    rows = [{"op_family": f, "op": f, "device": gpu, "dtype": "fp8", **sizes} for gpu, f in wanted]
    rows += [{**rows[0], "device": "Far", "dtype": None}, {**rows[0], "op_family": "fft", "dtype": "fp16"}]
    far = {**load_device("l4").to_dict(), "name": "Far", "aliases": ["far"], "bandwidth_gbps": 1e7}
    source, result, devices = (tmp_path / name for name in ("rows.parquet", "out.parquet", "devices.yaml"))
    devices.write_text(yaml.safe_dump(far))
    table = ["--table", str(source), "-o", str(result), "--devices", str(devices)]
    pq.write_table(pa.Table.from_pylist(rows), source)
    done = document(capfd, *table)
    written = pq.read_table(result).to_pylist()
    said = [row["objection"] for row in written]
    assert "got fp8" in said[0] and said[0] == said[1]  # in a softmax nothing is multiplied
    assert "Far lies" in said[6] and said[7] == "no known family, or a size is missing"
    assert said[2:6] == 4 * [None] and done["predicted"] == 4
    assert all((row["predicted_ms"] is None) == (row["objection"] is not None) for row in written)
    remarks = done["remarks"]
    assert isinstance(remarks, list) and "4 rows are fp8, which was not measured" in remarks[0]
    assert f"2 rows have no prediction: {said[0]}" in remarks
    assert f"1 rows have no prediction: {said[6]}" in remarks
    pq.write_table(pa.Table.from_pylist([rows[5], rows[2]]), source)
    document(capfd, *table)
    alone = [row["predicted_ms"] for row in pq.read_table(result).to_pylist()]
    assert alone == pytest.approx([written[5]["predicted_ms"], written[2]["predicted_ms"]])
    pq.write_table(pa.Table.from_pylist(rows[:2]), source)
    assert "got fp8" in refusal(capfd, *table)


def test_tables_may_be_csv(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source, result = tmp_path / "rows.csv", tmp_path / "out.csv"
    rows = "linear,linear,l4,1,512,512,64,,fp16\nsoftmax,softmax,t4,512,,,,1024,\nsoftmax,softmax,t4,,,,,,\n"
    source.write_text(f"op_family,op,device,B,M,N,K,H,dtype\n{rows}")
    assert document(capfd, "--table", str(source), "-o", str(result))["predicted"] == 2
    written = pyarrow.csv.read_csv(result).to_pylist()
    single = document(capfd, "softmax:B=512,H=1024", "--gpu", "t4")["predictions"]
    assert isinstance(single, list)
    assert written[1]["predicted_ms"] == pytest.approx(single[0]["runtime_ms"])
    assert written[2]["predicted_ms"] is None
    source.write_text("")
    said = refusal(capfd, "--table", str(source), "-o", str(result))
    assert f"cannot read {source} as CSV: Empty CSV file" in said


OTHERS = (
    "attention:B=16,M=512,N=512,K=64", "fused_attention:B=16,M=512,N=512,K=64",
    "pool:B=64,H=28,W=28,K=3,S=2", "pool:B=64,H=28,W=28,K=3", "embedding:B=4096,H=1024,V=50000",
    "reduction:B=512,H=1024", "cat:B=512,H=1024", "copy:B=512,H=1024",
    "conv:B=8,C=64,O=64,H=56,W=56,K=3,P=1", "conv:B=8,C=64,O=64,H=56,W=56,K=3,P=1,G=64",
    "conv:B=8,C=64,O=64,H=56,W=56,K=3,P=1,G=8", "rmsnorm:B=512,H=1024",
)  # fmt: skip
_CONV = {"C": "conv_cin", "O": "conv_cout", "W": "conv_img", "K": "conv_k", "S": "conv_stride",
         "P": "conv_pad", "G": "conv_groups"}  # fmt: skip


def test_families_in_tables_are_predicted_as_alone(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = []
    for text in OTHERS:
        family, _, written = text.partition(":")
        sizes = {name: int(value) for name, value in (part.split("=") for part in written.split(","))}
        if family == "conv":
            sizes = {"S": 1, "G": 1} | sizes
            sizes = {_CONV.get(name, name): value for name, value in sizes.items() if name != "H"}
        row = {"op_family": family, "op": family, "device": "t4", **dict.fromkeys("BMNKHWSV")}
        rows.append({**row, **dict.fromkeys(_CONV.values()), **sizes})
    source, result = tmp_path / "rows.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.Table.from_pylist(rows), source)
    done = document(capfd, "--table", str(source), "-o", str(result))
    assert done["predicted"] == len(OTHERS)
    remarks = done["remarks"]
    assert isinstance(remarks, list) and "2 rows are of a family that was not measured, pool" in remarks[1]
    written = pq.read_table(result).to_pylist()
    for text, row in zip(OTHERS, written, strict=True):
        (alone,) = document(capfd, text, "--gpu", "t4")["predictions"]  # type: ignore[misc]
        assert alone["runtime_ms"] == pytest.approx(row["predicted_ms"]), text
        assert alone["intervals_ms"]["80%"] == pytest.approx([row["lo_ms"], row["hi_ms"]]), text
    by_text = dict(zip(OTHERS, (row["predicted_ms"] for row in written), strict=True))
    assert by_text[OTHERS[1]] < by_text[OTHERS[0]]  # the scores are not written
    assert by_text[OTHERS[9]] < by_text[OTHERS[8]]  # a depthwise convolution does a 64th of the work
    rows[0]["B"] = 0
    pq.write_table(pa.Table.from_pylist(rows), source)
    said = refusal(capfd, "--table", str(source), "-o", str(result))
    assert "row 0: attention: expected batch of at least 1, got 0" in said
    assert "--fused is for models" in refusal(capfd, OTHERS[0], "--gpu", "t4", "--fused")


def test_tables_of_models(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    again = {
        "OpName": "Linear",
        "BwOps": "[]",
        "AccOps": "[]",
        "InputShapes": "[]",
        "in_repeated_layer": True,
    }
    step = {**again, "FwOps": "[['Linear', (4096, 1024, 1024)]]"}
    back = {"BwOps": "[['Linear', (4096, 1024, 1024)], ['Linear', (1024, 4096, 1024)]]"}
    network = {**again, "OpName": "allreduce", "FwOps": "[['ALLREDUCE', (1024,)]]"}
    nodes = [{"desc": "one", **step}, {"desc": "train", **step, **back}, {"desc": "tp", **step}]
    graphs, models, result = (
        tmp_path / name for name in ("gpu_models_opgraphs.parquet", "models.parquet", "out.parquet")
    )
    pq.write_table(pa.Table.from_pylist([*nodes, {"desc": "tp", **network}]), graphs)
    wanted = [("one", 1), ("one", 24), ("train", 24), ("tp", 24), ("none", 1), ("one", None)]
    rows = [{"desc": desc, "device": "Tesla_T4", "num_layer": layers} for desc, layers in wanted]
    pq.write_table(pa.Table.from_pylist(rows), models)
    command = ["--models", str(models), "-o", str(result)]
    done = document(capfd, *command)
    assert (done["rows"], done["predicted"]) == (6, 3)
    assert done["remarks"] == [
        "none has no graph", "one has a repeated layer, and no num_layer",
        "tp runs on several GPUs (tensor parallel, ALLREDUCE); give the graph of one GPU's share",
    ]  # fmt: skip
    one, layers, train, *refused = pq.read_table(result).to_pylist()
    assert layers["predicted_ms"] == pytest.approx(24 * one["predicted_ms"])
    assert 2.5 < train["predicted_ms"] / layers["predicted_ms"] < 3.5  # two products backwards for each
    assert train["lo_ms"] < train["predicted_ms"] < train["hi_ms"] and train["objection"] is None
    assert all(row["predicted_ms"] is None and row["objection"] for row in refused)
    runs = tmp_path / "runs.csv"
    runs.write_text("op_family,device,M,N,K,latency_ms\nlinear,t4,4096,1024,1024,99\n")
    document(capfd, *command, "--calibrate", str(runs))
    assert pq.read_table(result)["predicted_ms"][1].as_py() > layers["predicted_ms"]
    # graphs that say the number of layers themselves
    pq.write_table(pa.Table.from_pylist([{**node, "num_layer": 24} for node in nodes]), graphs)
    gpus = ["--gpu", "t4", "--gpu", "l4", "--gpu", "t4"]
    assert document(capfd, "--models", str(graphs), *gpus, "-o", str(result))["rows"] == 6
    both = {(row["desc"], row["device"]): row["predicted_ms"] for row in pq.read_table(result).to_pylist()}
    assert both["one", "t4"] == pytest.approx(layers["predicted_ms"]) and len(both) == 6


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ("desc", "expected a column 'desc'"),
        ("num_layer=four", "num_layer: expected numbers of at least 0, got 'four'"),
        ("num_layer", "expected a column 'num_layer'"),
        ("BwOps", "expected a column 'BwOps'"),
        ("FwOps=[['Linear', (1, 2)]]", "row 0: expected operators as [['Linear', (512, 1024, 768)]]"),
        ("FwOps=[", "row 0: expected operators as"),
        ("FwOps=[[1, (512, 1024, 768)]]", "row 0: expected operators as"),
        ("FwOps=[[None]]", "row 0: expected operators as"),
        ("desc=", "row 0: expected the name of a model in desc, got None"),
    ],
)
def test_tables_of_models_that_are_none(
    column: str, problem: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    name, given, value = column.partition("=")
    node: dict[str, object] = {
        "desc": "m", "OpName": "Linear", "FwOps": "[]", "BwOps": "[]", "AccOps": "[]", "InputShapes": "[]",
        "in_repeated_layer": True, "num_layer": 1,
    }  # fmt: skip
    node = {**node, name: value or None} if given else {key: v for key, v in node.items() if key != name}
    graphs = tmp_path / "graphs.parquet"
    pq.write_table(pa.Table.from_pylist([node]), graphs)
    command = ["--models", str(graphs), "-o", str(tmp_path / "out.parquet")]
    assert problem in refusal(capfd, *command, "--gpu", "t4")
    assert "take their GPUs from --gpu" in refusal(capfd, *command)
    assert "--models needs --output" in refusal(capfd, *command[:2], "--gpu", "t4")
    assert "--fused: a table of --models takes none" in refusal(capfd, *command, "--gpu", "t4", "--fused")


@pytest.mark.parametrize(("layers", "said"), [([-4], "got -4"), ([], "got a table without rows")])
def test_tables_of_models_without_layers(
    layers: list[int], said: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    models = tmp_path / "models.parquet"
    names = ["m"] * len(layers)
    pq.write_table(pa.table({"desc": names, "device": ["t4"] * len(layers), "num_layer": layers}), models)
    assert said in refusal(capfd, "--models", str(models), "-o", str(tmp_path / "out.parquet"))


def test_a_table_is_calibrated_by_runs_on_its_gpu(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source, result, devices, runs = (
        tmp_path / name for name in ("rows.parquet", "out.parquet", "devices.yaml", "runs.csv")
    )
    row = {"op_family": "linear", "op": "linear", "device": "ours", "B": 1, "M": 4096, "N": 4096, "K": 1024}
    pq.write_table(pa.Table.from_pylist([{**row, "H": None}]), source)
    devices.write_text(yaml.safe_dump({"ours": "a10"}))
    table = ["--table", str(source), "-o", str(result), "--devices", str(devices)]
    document(capfd, *table)
    (before,) = pq.read_table(result)["predicted_ms"].to_pylist()
    runs.write_text(f"op_family,device,M,N,K,latency_ms\nlinear,ours,4096,4096,1024,{1.4 * before}\n")
    document(capfd, *table, "--calibrate", str(runs))
    (after,) = pq.read_table(result)["predicted_ms"].to_pylist()
    assert before < after < 1.4 * before
    rows = [{**row, "H": None, "device": gpu} for gpu in ("A10", "t4")]
    pq.write_table(pa.Table.from_pylist(rows), source)
    runs.write_text(f"op_family,device,M,N,K,latency_ms\nlinear,NVIDIA A10,4096,4096,1024,{1.4 * before}\n")
    document(capfd, *table[:4])
    plain = pq.read_table(result)["predicted_ms"].to_pylist()
    document(capfd, *table[:4], "--calibrate", str(runs))  # the catalog knows both: each is its own
    adapted = pq.read_table(result)["predicted_ms"].to_pylist()
    assert adapted == pytest.approx([after, plain[1]]) and plain[0] == pytest.approx(before)
    runs.write_text("op_family,device,M,N,K,latency_ms\nlinear,l4,4096,4096,1024,1\n")
    assert "expected runs on A10 or t4, got none" in refusal(capfd, *table[:4], "--calibrate", str(runs))
    kernel = ["linear:M=4096,N=4096,K=1024", "--gpu", "a10", "--calibrate", str(runs)]
    assert "expected runs on a10, got none" in refusal(capfd, *kernel)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("linear,a10,4096,4096,,1.5", "1 rows of NVIDIA A10 are left out: no known family"),
        ("linear,a10,4096,4096,1024,-1", "expected latency_ms above 0 in every row of NVIDIA A10, got -1"),
        ("linear,a10,4096,4096,1024,0", "expected latency_ms above 0 in every row of NVIDIA A10, got 0"),
        ("linear,a10,4096,4096,1024,nan", "expected latency_ms above 0 in every row of NVIDIA A10, got nan"),
        ("linear,a10,4096,4096,1k,1.5", "runs.csv: column K: expected numbers: Failed to parse string: '1k'"),
        ("linear,a10,4096,4096,1024,soon", "column latency_ms: expected numbers"),
        ("linear,a10", "as CSV: "),
    ],
)
def test_runs_that_say_nothing(
    text: str, problem: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("op_family,device,M,N,K,latency_ms,Größe\n", "latin-1")
    kernel = ["linear:M=4096,N=4096,K=1024", "--gpu", "a10", "--calibrate", str(path)]
    assert "as CSV: 'utf-8' codec can't decode" in refusal(capfd, *kernel)
    path.write_text(f"op_family,device,M,N,K,latency_ms\n{text}\n")
    assert problem in refusal(capfd, *kernel)


def test_a_gpu_unlike_all_that_were_measured(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "far.yaml"
    spec = {**load_device("l4").to_dict(), "name": "Far", "aliases": ["far"], "bandwidth_gbps": 1e7}
    path.write_text(yaml.safe_dump(spec))
    kernel = "softmax:B=64,H=512"
    far, l4 = document(capfd, kernel, "--gpu", str(path), "--gpu", "l4")["predictions"]  # type: ignore[misc]
    assert "away from every GPU that was measured" in far["objection"] and "runtime_ms" not in far
    assert l4["objection"] is None and l4["runtime_ms"] > 0
    assert run(["predict", kernel, "--gpu", str(path), "--gpu", "l4"]) == 0
    assert "no prediction: Far lies" in " ".join(capfd.readouterr().out.split())
    assert run(["predict", kernel, "--gpu", str(path)]) == 1
    said = capfd.readouterr()
    assert said.out == "" and said.err.startswith("gnnperf: no prediction: Far lies ")


def test_what_a_model_launches_may_not_be_known(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "models.py"
    path.write_text(
        "import torch\n"
        "class Odd(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return torch.fft.fft(x).real + x\n"
        "def odd():\n"
        "    return Odd(), (torch.randn(4, 4),)\n"
        "def views():\n"
        "    return torch.nn.Flatten(), (torch.randn(4, 4, 4),)\n"
    )
    assert run(["predict", f"{path}:odd", "--gpu", "t4", "--json"]) == 0
    said = capfd.readouterr()
    found = json.loads(said.out)
    assert found["operators"] == 2 and found["unknown"] == {"_fft_r2c": 1} and not found["left_out"]
    assert f"{path}:odd: _fft_r2c is not known: 1 of it taken for reading and writing" in said.err
    assert run(["predict", f"{path}:views", "--gpu", "t4"]) == 1
    assert "it launches nothing that is known" in capfd.readouterr().err


def test_runs_on_the_gpu_calibrate(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    kernel = "linear:M=4096,N=4096,K=1024"
    before = document(capfd, kernel, "--gpu", "a10")["predictions"][0]  # type: ignore[index]
    path = tmp_path / "runs.csv"
    slower = 1.4 * before["runtime_ms"]
    path.write_text(f"op_family,device,M,N,K,latency_ms\nlinear,NVIDIA A10,4096,4096,1024,{slower}\n")
    after = document(capfd, kernel, "--gpu", "a10", "--calibrate", str(path))["predictions"][0]  # type: ignore[index]
    assert before["runtime_ms"] < after["runtime_ms"] < slower
    both = ["--gpu", "t4", "--gpu", "a10", "--calibrate", str(path)]
    other = document(capfd, kernel, *both)["predictions"][0]  # type: ignore[index]
    assert other == document(capfd, kernel, "--gpu", "t4")["predictions"][0]  # type: ignore[index]


def test_runs_that_nothing_is_learned_from_are_told(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    runs, source = tmp_path / "runs.csv", tmp_path / "rows.csv"
    head = "op_family,device,B,M,N,K,dtype,latency_ms\n"
    used = "linear,a100,1,4096,4096,1024,,9\n"
    left = "attention,a100,16,512,512,64,,1\n" * 2 + "fft,a100,1,8,8,8,,1\nlinear,a100,1,8,8,8,fp8,1\n"
    command = ["linear:M=4096,N=4096,K=1024", "--gpu", "a100", "--calibrate", str(runs)]
    runs.write_text(head + used + "attention,t4,16,512,512,64,,1\n")
    (plain,) = document(capfd, *command)["predictions"]  # type: ignore[misc]
    runs.write_text(head + used + left)
    (found,) = document(capfd, *command)["predictions"]  # type: ignore[misc]
    assert found["runtime_ms"] == pytest.approx(plain["runtime_ms"])
    several, unknown, fp8 = (words for words in found["remarks"] if words not in plain["remarks"])
    gpu = found["device"]
    assert several.startswith(f"{runs}: 2 rows of {gpu} are left out: they launch several kernels")
    assert unknown == f"{runs}: 1 rows of {gpu} are left out: no known family, or a size is missing"
    assert fp8.startswith(f"{runs}: 1 rows of {gpu} are left out: ") and "got fp8" in fp8
    source.write_text("op_family,op,device,B,M,N,K,H\n" + "linear,linear,a100,1,512,512,64,\n" * 2)
    table = ["--table", str(source), "-o", str(tmp_path / "out.csv"), *command[3:]]
    assert document(capfd, *table)["remarks"] == [several, unknown, fp8]
    runs.write_text(head + left)
    assert "nothing to calibrate by: 2 rows of" in refusal(capfd, *command)


HERE = str(Path(__file__).parent)
TABLE = ["--table", __file__, "-o", "out.parquet"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["softmax:B=8,H=8"], 2, "expected at least one --gpu"),
        ([], 2, "expected a KERNEL, or a --table"),
        (["softmax:B=8,H=8", "--gpu", "host"], 2, "expected a GPU, got a cpu"),
        (["softmax:B=8,H=8", "--gpu", "abacus"], 2, "no device 'abacus'"),
        (["nowhere.pt2", "--gpu", "t4"], 2, "no file nowhere.pt2"),
        (["conv2d:B=8", "--gpu", "t4"], 2, "did you mean conv?"),
        (["Layer_Norm:B=8,H=8", "--gpu", "t4"], 2, "did you mean layernorm?"),
        (["softmax:B=8,B=8,H=8", "--gpu", "t4"], 2, "expected each size once, got B twice"),
        (["gemm:MWG=64,MWG=32", "--gpu", "t4"], 2, "expected each parameter once, got MWG twice"),
        (["softmax:B=8", "--gpu", "t4"], 2, "softmax needs the sizes B H"),
        (["softmax:B=8,H=8", "--gpu", "t4", "--checkpoint", "nowhere"], 2, "'nowhere' does not exist"),
        (
            ["softmax:B=8,H=8", "--gpu", "t4", "--checkpoint", HERE],
            2,
            "give a folder written by `gnnperf train`",
        ),
        (["gemm:MWG=64", "--gpu", "t4", "--fused"], 2, "--fused is for models"),
        (["softmax:B=8,H=8", *TABLE], 2, "expected a KERNEL, or a --table"),
        (TABLE[:2], 2, "--table needs --output"),
        ([*TABLE, "--gpu", "t4"], 2, "--gpu: a --table takes none"),
        ([*TABLE, "--report", "page.html"], 2, "--report: a --table takes none"),
    ],
)
def test_mistakes(capfd: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str) -> None:
    assert run(["predict", *arguments]) == code
    captured = capfd.readouterr()
    assert captured.out == ""
    assert message in captured.err


def test_a_configuration_of_a_tunable_kernel(capfd: pytest.CaptureFixture[str]) -> None:
    kernel = "gemm:MWG=64,NWG=64,M=1024,N=1024,K=1024"
    found = document(capfd, kernel, "--gpu", "L4", "--gpu", "h200", "--gpu", "L4")["predictions"]
    assert isinstance(found, list)
    l4, h200 = found
    assert [p["device"] for p in found] == ["NVIDIA L4", "NVIDIA H200"]
    assert l4["runtime_ms"] > h200["runtime_ms"]
    assert l4["runtime_ms"] > l4["roofline_ms"] > h200["roofline_ms"]
    for level in ("50%", "80%", "95%"):
        low, high = l4["intervals_ms"][level]
        assert low < l4["runtime_ms"] < high


def test_values_that_a_description_does_not_list_are_told(capfd: pytest.CaptureFixture[str]) -> None:
    listed = document(capfd, "pnpoly:block_size_x=256", "--gpu", "L4")
    assert listed["remarks"] == []
    found = document(capfd, "pnpoly:block_size_x=65,points=1000000", "--gpu", "L4", "--gpu", "t4")
    assert found["remarks"] == ["block_size_x=65 is none of the 31 values that the description lists"]
    assert all(row["runtime_ms"] > 0 for row in found["predictions"])  # type: ignore[attr-defined]
    assert run(["predict", "pnpoly:block_size_x=65", "--gpu", "L4"]) == 0
    assert "block_size_x=65 is none of the 31 values" in " ".join(capfd.readouterr().out.split())


def test_a_configuration_that_a_gpu_has_no_room_for(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "small.yaml"
    small = {"name": "Small", "aliases": ["small"], "shared_bytes_per_block": 16384}
    path.write_text(yaml.safe_dump({**load_device("l4").to_dict(), **small}))
    command = ["gemm:MWG=128,NWG=128", "--gpu", str(path)]
    refused, l4 = document(capfd, *command, "--gpu", "l4")["predictions"]  # type: ignore[misc]
    reason = "a block needs more shared memory or threads than one can have on Small"
    assert (refused["objection"], l4["objection"]) == (reason, None)
    assert "runtime_ms" not in refused and l4["runtime_ms"] > 0
    assert run(["predict", *command, "--gpu", "l4"]) == 0
    assert f"no prediction: {reason}" in " ".join(capfd.readouterr().out.split())
    assert run(["predict", *command]) == 1
    assert capfd.readouterr().err == f"gnnperf: no prediction: {reason}\n"


def test_runs_of_a_tunable_kernel_calibrate(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    kernel = "pnpoly:block_size_x=256,tile_size=4,points=1000000"
    l4, h200 = document(capfd, kernel, "--gpu", "L4", "--gpu", "h200")["predictions"]  # type: ignore[misc]
    slower = 3 * l4["runtime_ms"]
    runs = tmp_path / "runs.csv"
    rows = "".join(f"L4,256,4,1000000,{slower}\n" for _ in range(5))
    runs.write_text("device,block_size_x,tile_size,points,runtime_ms\n" + rows)
    arguments = [kernel, "--gpu", "L4", "--gpu", "h200", "--calibrate", str(runs)]
    adapted, other = document(capfd, *arguments)["predictions"]  # type: ignore[misc]
    assert adapted["runtime_ms"] == pytest.approx(slower, rel=0.2)
    (low, high), (before_low, before_high) = (p["intervals_ms"]["80%"] for p in (adapted, l4))
    assert high / low < before_high / before_low
    assert other == h200


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "device,runtime_ms,block_size_x\nl4,0,256\n",
            "expected runtime_ms above 0 in every row of NVIDIA L4",
        ),
        ("device,runtime_ms,block_size_x\nl4,soon,256\n", "expected runtime_ms above 0"),
        ("device,block_size_x\nl4,256\n", "expected a column runtime_ms, got device, block_size_x"),
        ("device,runtime_ms,threads\nl4,1,256\n", "unknown parameter 'threads'"),
        ("device,runtime_ms,block_size_x\nl4,1,wide\n", "that are integers of at least 0"),
        ("device,runtime_ms\nl4\n", "as CSV: "),
        ("device,runtime_ms,block_size_x\nh200,1,256\n", "expected runs on L4, got none; leave it out"),
    ],
)
def test_runs_of_a_tunable_kernel_that_say_nothing(
    text: str, problem: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    runs = tmp_path / "runs.csv"
    runs.write_text(text)
    assert problem in refusal(capfd, "pnpoly:block_size_x=256", "--gpu", "L4", "--calibrate", str(runs))


@pytest.mark.parametrize(
    ("kernel", "problem"),
    [
        ("gemm:MWG=48,MDIMC=32", "expected a configuration in which MWG % (MDIMC * VWM) == 0"),
        ("gemm:M=16", "expected a configuration in which M // MWG is at least 1"),
        ("gemm:TILE=4", "unknown parameter 'TILE'; known: MWG"),
        ("gemm:MWG", "expected parameters and sizes as NAME=64,OTHER=2, got 'MWG'"),
        ("missing.yaml", "or a YAML file that describes a kernel, got 'missing.yaml'"),
    ],
)
def test_configurations_that_are_none(capfd: pytest.CaptureFixture[str], kernel: str, problem: str) -> None:
    assert problem in refusal(capfd, kernel, "--gpu", "L4")


def test_a_kernel_that_nobody_measured_is_not_faster_than_memory(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "scale.yaml"
    path.write_text(
        "name: scale\nsizes: {N: 268435456}\nparameters: {threads: [1024, 128], items: [8, 1]}\n"
        "buffers: {x: {dtype: float32, shape: [N]}, y: {dtype: float32, shape: [N]}}\n"
        "loops:\n"
        '- {axis: i, extent: "cdiv(N, threads * items)", bind: block.x}\n'
        "- {axis: i, extent: items}\n"
        "- {axis: i, extent: threads, bind: thread.x}\n"
        'compute: ["y[i] = 2 * x[i]"]\n'
    )
    l4 = load_device("l4")
    assert l4.bandwidth_gbps is not None
    for threads in (128, 1024):
        (found,) = document(capfd, f"{path}:threads={threads}", "--gpu", "l4")["predictions"]  # type: ignore[misc]
        assert found["runtime_ms"] > 0.999e3 * 2 * 4 * 268435456 / (l4.bandwidth_gbps * 1e9)
