"""The measures of the report on turns, each with what it says."""

from __future__ import annotations

from chassis.reports.reading import Measure, ReportDefinition

MOVED_OUT, READY, NOTICE_TO_READY = "moved_out", "ready", "notice_to_ready"
MOVED_IN, READY_TO_MOVE_IN, VACANT = "moved_in", "ready_to_move_in", "vacant"
NOT_READY, DOWN, TASK_COMPLETED = "not_ready", "down", "task_completed"

TURNS = ReportDefinition(
    "turns",
    (
        Measure(MOVED_OUT, "count", "turns", "Residents who moved out in the period."),
        Measure(
            READY, "duration", "days",
            "From the move-out to the day on which the unit became Vacant Ready for good, of units that did.",
        ),
        Measure(
            NOTICE_TO_READY, "duration", "days",
            "From the day of the notice to the day on which the unit became Vacant Ready.",
        ),
        Measure(
            MOVED_IN, "duration", "days",
            "From a move-out to the next move-in, of move-ins in the period after a move-out.",
        ),
        Measure(
            READY_TO_MOVE_IN, "duration", "days", "From the day on which the unit became Vacant Ready to the move-in."
        ),
        Measure(
            NOT_READY, "duration", "days",
            "How long a unit was Vacant Not Ready before it was let again or became ready.",
        ),
        Measure(DOWN, "duration", "days", "How long a unit was Down before it was let again or became ready."),
        Measure(
            TASK_COMPLETED, "duration", "days", "From the move-out to the completion of a make-ready task."
        ),
        Measure(VACANT, "level", "units", "Units that nobody lives in at the end of the period, since a move-out."),
    ),
    ranked_by=MOVED_OUT,
    dimensions={1: "property", 2: "task_type"},
    ranks={"task_type": TASK_COMPLETED},
)  # fmt: skip
