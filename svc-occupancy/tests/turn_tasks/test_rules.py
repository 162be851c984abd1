"""Every state of a task with every command."""

from __future__ import annotations

import itertools

import pytest

from chassis.refusals import Refusal
from svc_occupancy.turn_tasks import rules as task_rules
from svc_occupancy.turn_tasks.rules import TASK_ACTS, TASK_STATUSES

# The table, repeated here; all other pairs are refused.
BECOMES = {
    ("open", "change"): "open",
    ("open", "complete"): "completed",
    ("open", "cancel"): "cancelled",
    ("completed", "complete"): "completed",
    ("cancelled", "cancel"): "cancelled",
}


@pytest.mark.parametrize(("status", "act"), list(itertools.product(TASK_STATUSES, TASK_ACTS)))
def test_every_act_on_every_task(status: task_rules.TaskStatus, act: task_rules.TaskAct) -> None:
    if (status, act) in BECOMES:
        assert task_rules.after_act(status, act) == BECOMES[status, act]
        return
    with pytest.raises(Refusal) as refused:
        task_rules.after_act(status, act)
    assert refused.value.status == 422 and status in refused.value.message


def test_a_task_s_status_is_shown_and_read_back() -> None:
    assert [task_rules.stored_task_status(task_rules.public_task_status(status)) for status in TASK_STATUSES] == list(
        TASK_STATUSES
    )
    assert [task_rules.public_task_status(status) for status in TASK_STATUSES] == [
        status.title() for status in TASK_STATUSES
    ]
