"""How hard the laws are tried: by a profile of Hypothesis, for some of them by a share of it; and the longest trials, whole or not."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# What takes long on a busy machine is no failure.
NO_CLOCK = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}

# A few trials of the slow tier take a quarter of an hour to an hour: there they are bounded, unless this asks for them whole.
FULL_TRIALS = os.environ.get("AETHER_FULL_TRIALS") == "1"


def load_profile() -> None:
    """Load the profile that `HYPOTHESIS_PROFILE` names: `dev` unless it is set, and `ci` in `.ci/run`.

    `dev` tries a few examples and `ci` more, the same ones each time, so that only a change makes them fail.
    `explore` tries many others each time: for a person who looks for faults.
    """
    settings.register_profile("dev", max_examples=20, derandomize=True, database=None, **NO_CLOCK)
    settings.register_profile("ci", max_examples=60, derandomize=True, database=None, **NO_CLOCK)
    settings.register_profile("explore", max_examples=200, print_blob=True, **NO_CLOCK)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def examples(percent: int) -> settings:
    """Return settings with `percent` of the profile's examples, for a law that costs or finds more than others."""
    return settings(max_examples=max(1, settings.default.max_examples * percent // 100))
