"""`python -m gnnperf` is the `gnnperf` command."""

from __future__ import annotations

from gnnperf.cli.main import main

if __name__ == "__main__":
    main()
