"""Which device of the catalog a name means: people and tools write it in many ways."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from gnnperf.devices.spec import DeviceSpec
from gnnperf.errors import InputError

BRANDS = frozenset(
    "nvidia amd geforce tesla instinct radeon quadro rtx gtx rx pro gpu graphics card generation".split()
)
"""Words that may be said or left out."""
FORMS = re.compile(r"pcie|sxm|oam|hbm\d*e?|\d+gb")
"""Words for the form and the memory of a board: what they leave open, another board may be meant by."""


def plain(name: str) -> str:
    """Without case and punctuation: "Tesla T4", "tesla_t4" and "tesla-t4" are one name. "NVIDIA " and
    "AMD " are left out: some tools say them and some do not."""
    found = "".join(c for c in name.lower() if c.isalnum())
    return found.removeprefix("nvidia").removeprefix("amd")


def names_of(key: str, device: DeviceSpec) -> tuple[str, ...]:
    """All that a device goes by: the name of its file, its own, and its aliases."""
    return key, device.name, *device.aliases


def resolve(name: str, catalog: Mapping[str, DeviceSpec]) -> str | None:
    """The key of the device that a name means, or None: words may come in any order, brands may be missing,
    and so may the form of the board ("H100 SXM5", "A100-80GB") where one device alone is left.

    Raises InputError where several are.
    """
    words = _words(name) - BRANDS
    found = {key for key, device in catalog.items() if words and _fits(words, _all_words(key, device))}
    if len(found) > 1:
        raise InputError(f"{name!r} may be any of {', '.join(sorted(found))}; give one of them")
    return next(iter(found), None)


def similar(name: str, catalog: Mapping[str, DeviceSpec]) -> list[str]:
    """Keys of devices whose names are like one that none has."""
    words = _words(name) - BRANDS
    sharing = [key for key, device in catalog.items() if words & _all_words(key, device) - BRANDS]
    near = difflib.get_close_matches(plain(name), {plain(key): key for key in catalog}, n=5, cutoff=0.6)
    return list(dict.fromkeys([*sharing[:8], *(key for key in catalog if plain(key) in near)]))


def _fits(words: set[str], known: set[str]) -> bool:
    return words <= known and all(FORMS.fullmatch(word) for word in known - words - BRANDS)


def _all_words(key: str, device: DeviceSpec) -> set[str]:
    words = set[str]().union(*(_words(name) for name in names_of(key, device)))
    if device.memory_bytes:
        words |= {f"{round(device.memory_bytes / unit)}gb" for unit in (2**30, 10**9)}
    return words if words & {"pcie", "sxm"} else words | {"sxm", "oam"}


def _words(name: str) -> set[str]:
    """ "H100-SXM5-80GB" -> {"h100", "sxm", "80gb"}; "RTX3090ti" -> {"rtx", "3090", "ti"}."""
    text = re.sub(r"(\d+)\s*(gb|gib)\b", r"\1gb", name.lower().replace("pci-e", "pcie"))
    text = re.sub(r"\b(rtx|gtx|rx)(?=\d)", r"\1 ", text)
    text = re.sub(r"(?<=\d)(ti|super|xt)\b", r" \1", text)
    return {re.sub(r"^sxm\d$", "sxm", word) for word in re.findall(r"[a-z0-9]+", text)}
