"""How many examples a test against real servers tries: of Hypothesis, or of the files of public data.

The profile `ci` is loaded for every run. It tries the same examples each time, so a change fails for what it changed
and not for what chance finds. `pytest --hypothesis-profile=nightly` tries all, and new ones each time. Tests of pure
functions try Hypothesis' own number of examples, and in `ci` half of it.
"""

from hypothesis import HealthCheck, settings

CI, NIGHTLY = "ci", "nightly"
SHARE, LEAST = 4, 10
# No deadline, and no check of the time that making examples takes: on a machine that does something else as well, times
# say nothing.
AT_REST = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
ALL = settings.get_profile("default")
settings.register_profile(NIGHTLY, ALL, **AT_REST)
settings.register_profile(CI, ALL, max_examples=ALL.max_examples // 2, derandomize=True, **AT_REST)


def examples(most: int) -> int:
    """most: the number in the profile `nightly`; in `ci` a quarter of it, but 10 at least."""
    return most if is_whole() else min(most, max(LEAST, most // SHARE))


def is_whole() -> bool:
    """Whether all examples are tried: the profile is `nightly`."""
    return settings.get_current_profile_name() == NIGHTLY
