"""Sparse times dense by Intel MKL, as compiled sources that open the library of the `mkl` wheel.

MKL takes its fast code path on CPUs of its own vendor only. `fastest` switches it on everywhere: the
functions that MKL asks for the vendor are defined in the source, which is opened ahead of MKL and so takes
precedence over MKL's own (https://danieldk.eu/Intel-MKL-on-AMD-Zen; `mkl_serv_get_cpu_true`, which returns
a pointer to the function that knows, is new in MKL 2025).
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np

from gnnperf.errors import InputError, MeasureError
from gnnperf.measure import Argument, Compiler, Runner, Source

ARGUMENTS = ("indptr", "indices", "values", "X", "Y")
"""Arrays of the kernel, in the order in which the source takes them: Y[M, F] = A[M, N] X[N, F], A in CSR."""

_NAME_BYTES = 64
_VENDOR = """\
extern "C" int mkl_serv_intel_cpu_true() { return 1; }
extern "C" int mkl_serv_intel_cpu() { return 1; }
extern "C" void* mkl_serv_get_cpu_true() { return (void*)&mkl_serv_intel_cpu_true; }
extern "C" void* mkl_serv_get_cpu() { return (void*)&mkl_serv_intel_cpu; }
"""
# The inspector (hint and optimisation) runs at the first call, which is never timed. MKL's threads are
# those of GNU OpenMP, as ours are: another runtime's would go on spinning while others are timed.
_PRODUCT = """\
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
{vendor}
namespace {{
using number = {number};
struct description {{ int type, mode, diagonal; }};
constexpr int NON_TRANSPOSE = 10, ROW_MAJOR = 101, MANY_CALLS = 1000, GNU_THREADS = 3;
constexpr description GENERAL {{20, 0, 0}};
void* matrix;
int (*multiply)(int, number, void*, description, int, const number*, int, int, number, number*, int);

void check(bool good, const char* what) {{
  if (good) return;
  std::fprintf(stderr, "MKL: %s failed\\n", what);
  std::abort();
}}
void inspect(int32_t* indptr, int32_t* indices, number* values) {{
  Dl_info self;
  check(dladdr((void*)&inspect, &self), "dladdr");
  check(dlopen(self.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD), "opening the source for all to see");
  void* mkl = dlopen("{library}", RTLD_NOW | RTLD_GLOBAL);
  check(mkl, "dlopen");
  auto threading = (int (*)(int))dlsym(mkl, "MKL_Set_Threading_Layer");
  auto create = (int (*)(void**, int, int, int, int32_t*, int32_t*, int32_t*, number*))
      dlsym(mkl, "mkl_sparse_{letter}_create_csr");
  auto hint = (int (*)(void*, int, description, int, int, int))dlsym(mkl, "mkl_sparse_set_mm_hint");
  auto optimise = (int (*)(void*))dlsym(mkl, "mkl_sparse_optimize");
  multiply = (decltype(multiply))dlsym(mkl, "mkl_sparse_{letter}_mm");
  check(threading && create && hint && optimise && multiply, "dlsym");
  check(threading(GNU_THREADS) >= 0, "MKL_Set_Threading_Layer");
  check(!create(&matrix, 0, {rows}, {columns}, indptr, indptr + 1, indices, values), "create_csr");
  check(!hint(matrix, NON_TRANSPOSE, GENERAL, ROW_MAJOR, {features}, MANY_CALLS), "set_mm_hint");
  check(!optimise(matrix), "optimize");
}}
}}
extern "C" void {symbol}(int32_t* indptr, int32_t* indices, {number}* values, {number}* X, {number}* Y) {{
  if (!matrix) inspect(indptr, indices, values);
  const int status = multiply(
      NON_TRANSPOSE, 1, matrix, GENERAL, ROW_MAJOR, X, {features}, {features}, 0, Y, {features});
  check(!status, "mm");
}}
"""
_PROBE = """
extern "C" void product_path(char* name) {{
  int32_t indptr[] = {{0, 1}}, indices[] = {{0}};
  {number} values[] = {{1}}, X[{features}] = {{}}, Y[{features}];
  product(indptr, indices, values, X, Y);
  dl_iterate_phdr([](dl_phdr_info* loaded, size_t, void* name) {{
    const char* base = std::strrchr(loaded->dlpi_name, '/');
    for (const char* kernels : {{"libmkl_def", "libmkl_mc", "libmkl_avx"}})
      if (base && !std::strncmp(base + 1, kernels, std::strlen(kernels)))
        std::strncpy((char*)name, base + 1, {name_bytes} - 1);
    return 0;
  }}, name);
}}
"""


def find_mkl() -> Path:
    """`libmkl_rt` of the `mkl` wheel. Raises InputError where it is not installed."""
    try:
        files = distribution("mkl").files or []
        found = next(Path(str(f.locate())) for f in files if f.name.startswith("libmkl_rt.so"))
    except (PackageNotFoundError, StopIteration):
        raise InputError(
            "case-spmm compares with Intel MKL, which is not installed: pip install 'gnnperf[mkl]'"
        ) from None
    return found.resolve()


def mkl_source(rows: int, columns: int, features: int, dtype: str, *, fastest: bool) -> Source:
    """Y = A X by MKL's inspector-executor, on arrays called `ARGUMENTS`; dtype "float32" or "float64".

    A process may use one such source, for one matrix: MKL chooses its code path once.
    """
    symbol = f"mkl_{'fastest' if fastest else 'shipped'}"
    text = _product(symbol, rows, columns, features, dtype, fastest)
    return Source(text, symbol, tuple(Argument(name) for name in ARGUMENTS), link=("-ldl",))


def code_path(compiler: Compiler, runner: Runner, *, fastest: bool) -> str:
    """The library of kernels that MKL loads on this machine ("libmkl_avx512.so.3").

    Raises MeasureError where MKL takes the path for unknown CPUs in spite of `fastest`.
    """
    product = _product("product", 1, 1, 16, "float32", fastest)
    text = product + _PROBE.format(number="float", features=16, name_bytes=_NAME_BYTES)
    source = Source(text, "product_path", (Argument("name"),), link=("-ldl",))
    data = {"name": np.zeros(_NAME_BYTES, np.uint8)}
    written = runner.reference(compiler.build(source), data, ["name"], ["name"])["name"]
    name = bytes(written).partition(b"\0")[0].decode()
    if fastest and not name.startswith("libmkl_avx"):
        raise MeasureError(f"MKL's fast code path cannot be switched on: it loads {name or 'no kernels'}")
    return name


def _product(symbol: str, rows: int, columns: int, features: int, dtype: str, fastest: bool) -> str:
    number, letter = {"float32": ("float", "s"), "float64": ("double", "d")}[dtype]
    return _PRODUCT.format(
        vendor=_VENDOR if fastest else "", symbol=symbol, number=number, letter=letter, library=find_mkl(),
        rows=rows, columns=columns, features=features,
    )  # fmt: skip
