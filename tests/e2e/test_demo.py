"""The demo company, walked page by page."""

from __future__ import annotations

import pytest

from .system import Company, System


@pytest.mark.parametrize("limit", [1, 7, 50])
def test_every_page_size_walks_the_demo_company_alike(system: System, limit: int) -> None:
    demo = system.demo
    company = Company(system, demo["company_id"], demo["administrator"]["email"], demo["keys"])
    company.keys["read"] = system.mint(company.company_id, "read", company.email)
    whole = [record["entity_id"] for record in company.walk("/assets")]
    company.keys["read"] = system.mint(company.company_id, "read", company.email)
    assert [record["entity_id"] for record in company.walk("/assets", limit)] == whole
