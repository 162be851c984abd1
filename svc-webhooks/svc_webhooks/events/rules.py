"""The refusals of events. Pure."""

from chassis.refusals import Refusal


def drop_held_up() -> Refusal:
    return Refusal(
        503,
        "days_held_up",
        "A statement that takes long holds up the drop of a day of events; try again, or leave it to the next hour.",
    )
