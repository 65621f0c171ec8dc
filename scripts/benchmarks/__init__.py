"""Tables that compare gnnperf with other tools: one file per table, all of them a `Study`.

`python scripts/benchmarks/run.py NAME` runs one. The first line of a file says what its table shows.
"""
