"""The refusal without a vault. Pure."""

from chassis.refusals import Refusal


def vault_unavailable(left_undone: str = "nothing was created") -> Refusal:
    return Refusal(
        503,
        "vault_unavailable",
        f"The signing secret could not be encrypted and {left_undone}; retry with backoff.",
    )
