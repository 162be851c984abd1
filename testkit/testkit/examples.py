"""How many examples Hypothesis tries in tests against real servers.

The profile `ci` is loaded for every run; `pytest --hypothesis-profile=nightly` tries all. Tests of pure functions try
Hypothesis' own number of examples in both.
"""

from hypothesis import HealthCheck, settings

CI, NIGHTLY = "ci", "nightly"
SHARE, LEAST = 4, 10
# No deadline, and no check of the time that making examples takes: on a machine that does something else as well, times
# say nothing.
AT_REST = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
for profile in (NIGHTLY, CI):
    settings.register_profile(profile, settings.get_profile("default"), **AT_REST)


def examples(most: int) -> int:
    """most: the number in the profile `nightly`; in `ci` a quarter of it, but 10 at least."""
    return most if settings.get_current_profile_name() == NIGHTLY else min(most, max(LEAST, most // SHARE))
