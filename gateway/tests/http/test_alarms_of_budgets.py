"""The alarm of a budget, for real: a gateway's own budget is used up in this process."""

from chassis.http.connection_limits import Budget
from testkit.alarms import check_fires, own


def test_a_budget_that_is_used_up_fires() -> None:
    budget = Budget("tls", 100)
    before = {"gateway": own()}
    budget.hold(lambda: None, 80)
    budget.hold(lambda: None, 80)
    check_fires("BudgetExceeded", before=before, after={"gateway": own()})
