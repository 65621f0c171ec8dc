"""TVM's runtime by itself: libraries of built functions are loaded, run and timed without TVM's compiler."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnnperf.documents import replacing
from gnnperf.errors import MeasureError

CUDA, CPU = "cuda", "cpu"
LIBRARIES = {CPU: ("libtvm_runtime.so",), CUDA: ("libtvm_runtime.so", "libtvm_runtime_cuda.so")}
CUDART = "libcudart.so.13"
"""What the runtime for CUDA is linked to: from the pack, or, where that has none, this machine's."""
CUBINS = "cubins"
NVCC_OPTIONS = (
    "-O3", "-w", "--use_fast_math", "--expt-relaxed-constexpr", "--expt-extended-lambda",
    "-U__CUDA_NO_HALF_OPERATORS__", "-U__CUDA_NO_HALF_CONVERSIONS__",
)  # fmt: skip
"""As TVM compiles CUDA."""


def cubin_name(source: str) -> str:
    """The file with the machine code of a CUDA source."""
    return hashlib.sha1(source.encode()).hexdigest() + ".cubin"


def compile_cubin(source: str, arch: str, folder: Path, timeout_s: float = 300.0) -> Path:
    """Machine code of a CUDA source for an architecture, with nvcc; kept in `folder`. Raises MeasureError."""
    target = folder / cubin_name(source)
    if target.is_file():
        return target
    if shutil.which("nvcc") is None:
        raise MeasureError("no machine code for this kernel in the pack, and no nvcc here to compile it")
    folder.mkdir(parents=True, exist_ok=True)
    text = target.with_suffix(".cu")
    text.write_text(source)
    try:
        with replacing(target) as partial:
            command = ["nvcc", "-cubin", f"-arch={arch}", *NVCC_OPTIONS, "-o", str(partial), str(text)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
            if done.returncode:
                lines = [*filter(None, done.stderr.splitlines()), "no message"]
                first = next((line for line in lines if "error" in line), lines[0])
                raise MeasureError(f"nvcc: {first.replace(str(text), 'kernel')[:300]}")
    except subprocess.TimeoutExpired:
        raise MeasureError(f"nvcc took longer than {timeout_s:g} s") from None
    finally:
        text.unlink(missing_ok=True)
    return target


class DeviceRuntime:
    """One device of this machine, through the runtime in `folder`."""

    def __init__(self, folder: Path, device: str, pack: Path, arch: str) -> None:
        """device: CPU or CUDA, its first. pack: whose `cubins` hold the machine code for `arch`. Raises
        MeasureError."""
        try:
            import tvm_ffi
        except ImportError:
            raise MeasureError(
                "no tvm_ffi here: install apache-tvm-ffi in the version of pack.json"
            ) from None
        self._ffi = tvm_ffi
        given = (CUDART,) if device == CUDA and (folder / CUDART).is_file() else ()
        try:
            for name in (*given, *LIBRARIES[device]):
                ctypes.CDLL(str(folder / name), mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise MeasureError(f"cannot load TVM's runtime: {error}") from None
        if device == CUDA:

            def machine_code(source: str) -> bytes:
                return compile_cubin(source, arch, pack / CUBINS).read_bytes()

            tvm_ffi.register_global_func("tvm_callback_cuda_compile", machine_code, override=True)
        self._device = tvm_ffi.device(device, 0)
        names = ("TensorAllocWithScope", "TensorCopyFromBytes", "TensorCopyToBytes")
        found = (tvm_ffi.get_global_func(f"runtime.TVM{name}") for name in names)
        self._allocate, self._write, self._read = found
        self._evaluator = tvm_ffi.get_global_func("runtime.RPCTimeEvaluator")

    def load(self, library: Path) -> Any:
        """A library that was exported for this kind of device: its functions by name."""
        return self._ffi.load_module(str(library.resolve()))

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Any:
        """A tensor of bytes of ones: NaN, for floating-point numbers."""
        poisoned = np.empty(tuple(shape), dtype)
        poisoned.view(np.uint8).fill(0xFF)
        return self.tensor(poisoned)

    def tensor(self, array: NDArray[Any]) -> Any:
        """A tensor on the device with an array's elements."""
        whole = np.ascontiguousarray(array)
        shape, dtype = self._ffi.Shape(whole.shape), self._ffi.dtype(str(whole.dtype))
        tensor = self._allocate(shape, dtype, self._device, None)
        self._write(tensor, whole.ctypes.data_as(ctypes.c_void_p), whole.nbytes)
        return tensor

    def numpy(self, tensor: Any) -> NDArray[Any]:
        """The elements of a tensor, once all that was started has ended."""
        array = np.empty(tuple(tensor.shape), np.dtype(str(tensor.dtype)))
        self._read(tensor, array.ctypes.data_as(ctypes.c_void_p), array.nbytes)
        return array

    def times_s(
        self, library: Any, name: str, arguments: Sequence[Any], repeats: int, sample_s: float
    ) -> list[float]:
        """Mean seconds of a run, `repeats` times, each over at least `sample_s` (0: one run), by the device's
        own events where it has them."""
        milliseconds = round(sample_s * 1000)
        kind, number = self._device.dlpack_device_type(), self._device.index
        evaluate = self._evaluator(library, name, kind, number, 1, repeats, milliseconds, 100, 0, 1, 0, "")
        return list(struct.unpack(f"@{repeats}d", evaluate(*arguments)))
