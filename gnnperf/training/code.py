"""What code made something that is kept: other code makes it anew."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import gnnperf


@functools.cache
def code_digest(*folders: str) -> str:
    """Hash of the Python files of gnnperf below some of its folders, or of all."""
    root = Path(gnnperf.__file__).parent
    digest = hashlib.sha256()
    for folder in folders or (".",):
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
