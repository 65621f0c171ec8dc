"""The case study of sparse times dense (CSR) against Intel MKL."""

from gnnperf.evaluation.spmm.mkl import find_mkl
from gnnperf.evaluation.spmm.products import Product, grid, scattered
from gnnperf.evaluation.spmm.study import SpmmResult, describe_setup, run_product, summarise

__all__ = [
    "Product",
    "SpmmResult",
    "describe_setup",
    "find_mkl",
    "grid",
    "run_product",
    "scattered",
    "summarise",
]
