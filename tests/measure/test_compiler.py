from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from gnnperf.errors import BuildError, InputError, MeasureError
from gnnperf.measure import FLAGS, Compiler, Library, Source
from gnnperf.measure.subprocesses import Tools

GOOD = 'extern "C" void {0}() {{}}\n'


def sources(n: int, prefix: str = "g") -> list[Source]:
    return [Source(GOOD.format(f"{prefix}{i}"), f"{prefix}{i}", ()) for i in range(n)]


def test_one_bad_source_costs_only_itself(compiler: Compiler) -> None:
    wanted = sources(9)
    wanted[4] = Source('extern "C" void g4() { no_such_name; }', "g4", ())
    results = compiler.build_all(wanted)
    assert [isinstance(r, Library) for r in results] == [i != 4 for i in range(9)]
    assert str(results[4]) == "error: 'no_such_name' was not declared in this scope"
    for i in (0, 3, 5, 8):
        library = results[i]
        assert isinstance(library, Library)
        assert library.symbol == f"g{i}"
        assert "g++" in library.compiler
        assert "-ffast-math" in library.flags
    with pytest.raises(BuildError, match="no_such_name"):
        compiler.build(wanted[4])


def test_sources_share_libraries_and_are_built_once(compiler: Compiler) -> None:
    wanted = sources(4, "shared")
    first = compiler.build_all(wanted)
    assert len({r.path for r in first if isinstance(r, Library)}) == 2  # two jobs, two at a time
    files = sorted(compiler.folder.iterdir())
    assert compiler.build_all(wanted[:2]) == first[:2]
    assert sorted(compiler.folder.iterdir()) == files


def test_sources_that_would_disturb_one_another_still_build(compiler: Compiler) -> None:
    helper = "static int helper() {{ return {1}; }}\n" + GOOD
    same_helper = [Source(helper.format(f"h{i}", i), f"h{i}", ()) for i in range(4)]
    macro = [Source(f"#define main{i} 1\n" + GOOD.format(f"m{i}"), f"m{i}", ()) for i in range(4)]
    same_symbol = [Source(GOOD.format("same") + f"// {i}", "same", ()) for i in range(3)]
    results = compiler.build_all(same_helper + macro + same_symbol)
    assert all(isinstance(r, Library) for r in results), results


def test_linker_errors_are_build_errors(compiler: Compiler) -> None:
    with pytest.raises(BuildError, match="cannot find -lno_such_library"):
        compiler.build(Source(GOOD.format("l"), "l", (), link=("-lno_such_library",)))


def test_a_build_that_does_not_end(compiler: Compiler, tmp_path: Path) -> None:
    pipe = tmp_path / "never_written"
    os.mkfifo(pipe)  # the preprocessor waits for a writer
    endless = Source(f'#include "{pipe}"\n', "endless", ())
    with Compiler(timeout_s=3.0) as impatient:
        results = impatient.build_all([*sources(1), endless])
    assert isinstance(results[0], Library)
    assert isinstance(results[1], BuildError)
    assert str(results[1]) == "compiling took longer than 3 s"


def test_a_build_that_eats_memory() -> None:
    with Compiler(memory_bytes=64 << 20) as starved, pytest.raises(BuildError):
        starved.build(Source("#include <regex>\nstd::regex r;" + GOOD.format("f"), "f", ()))


def test_missing_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNNPERF_CXX", "no-such-compiler")
    with pytest.raises(InputError, match="'no-such-compiler' not found; install g\\+\\+"):
        Compiler()
    monkeypatch.setenv("GNNPERF_CXX", "false")
    with pytest.raises(InputError, match="does not run"):
        Compiler()


def test_a_build_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MeasureError, match=r"cannot use the build folder .*: Not a directory"):
        Compiler(tmp_path / "file" / "build")


@pytest.mark.parametrize("limit", [0, 100])
def test_a_full_disk_is_not_the_fault_of_the_source(limit: int, tmp_path: Path, compiler: Compiler) -> None:
    """No file may be longer than `limit` bytes: the source (0) or the library (100) has no room."""
    script = f"""
        import resource
        from gnnperf.errors import MeasureError
        from gnnperf.measure import Compiler, Source
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
        try:
            Compiler({str(tmp_path)!r}).build(Source('extern "C" void f() {{}}', "f", ()))
        except MeasureError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)
    assert done.stdout.startswith(f"cannot write to the build folder {tmp_path}"), done
    assert list(tmp_path.iterdir()) == []


def test_headers_are_precompiled_once_and_only_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNNPERF_CACHE", str(tmp_path))
    for _ in range(2):
        with Compiler() as fresh:
            fresh.build(Source(GOOD.format("f"), "f", ()))
    (header,) = tmp_path.glob("headers/*/gnnperf.h.gch")
    assert sorted(p.name for p in header.parent.iterdir()) == ["gnnperf.h", "gnnperf.h.gch"]
    monkeypatch.setenv("GNNPERF_CACHE", os.devnull)
    with Compiler() as fresh:  # no cache folder: slower, not broken
        fresh.build(Source(GOOD.format("f"), "f", ()))


def test_a_temporary_build_folder_is_deleted_and_a_given_one_kept(tmp_path: Path) -> None:
    with Compiler() as temporary, Compiler(tmp_path / "kept") as kept:
        for compiler in (temporary, kept):
            assert Path(compiler.build(sources(1)[0]).path).exists()
    assert not temporary.folder.exists()
    assert kept.folder.exists()


def test_interrupting_kills_the_compilers(tmp_path: Path) -> None:
    pipe = tmp_path / "never_written"
    os.mkfifo(pipe)
    script = f"""
        from gnnperf.measure import Compiler, Source
        with Compiler({str(tmp_path)!r}) as compiler:
            text = '#include "{pipe}"'
            compiler.build_all([Source(text + " " * i, "f", ()) for i in range(5)])
    """
    client = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stderr=subprocess.PIPE, text=True
    )
    with pipe.open("w"):  # returns when the first compiler reads
        pass
    client.send_signal(signal.SIGINT)
    _, errors = client.communicate(timeout=30)
    assert errors.strip().endswith("KeyboardInterrupt")
    running = [p.read_text() for p in Path("/proc").glob("[0-9]*/cmdline") if os.access(p, os.R_OK)]
    assert not [command for command in running if str(tmp_path) in command]


def test_tools_do_not_start_once_stopped() -> None:
    tools = Tools()
    tools.stop()
    with pytest.raises(MeasureError, match="stopped"):
        tools.run(["true"], ".", 1.0, 1 << 30)
    tools.resume()
    assert tools.run(["true"], ".", 10.0, 1 << 30).returncode == 0


def test_plain_and_dace_code_are_compiled_alike() -> None:
    assert set(FLAGS["plain"]) - set(FLAGS["dace"]) == {"-std=c++17"}
