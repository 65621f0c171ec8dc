"""Compile, run in isolation, verify, time, profile. Light: numpy and the standard library."""

from gnnperf.measure.compiler import FLAGS, Compiler
from gnnperf.measure.library import Argument, Library, Source
from gnnperf.measure.measurement import STATUSES, Limits, Measurement, Status, Timing
from gnnperf.measure.profile import Case, Profile, profile
from gnnperf.measure.runner import Runner
from gnnperf.measure.statistics import is_tie, median_interval, speedup_interval
from gnnperf.measure.verification import (
    Evidence,
    equivalent_length,
    is_moderate,
    is_stable,
    perturbed,
    relative_tolerance,
    verify,
)

__all__ = [
    "FLAGS",
    "STATUSES",
    "Argument",
    "Case",
    "Compiler",
    "Evidence",
    "Library",
    "Limits",
    "Measurement",
    "Profile",
    "Runner",
    "Source",
    "Status",
    "Timing",
    "equivalent_length",
    "is_moderate",
    "is_stable",
    "is_tie",
    "median_interval",
    "perturbed",
    "profile",
    "relative_tolerance",
    "speedup_interval",
    "verify",
]
