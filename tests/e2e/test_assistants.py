"""`makeready-client mcp` with the client of the protocol's own package, over stdio, against a running system."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters

from .system import Company, System


@pytest.fixture(scope="module")
def company(system: System) -> Company:
    company = system.company("Assisted")
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    company.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1"}])
    return company


class Person:
    """Answers the questions of the server, and remembers them."""

    def __init__(self, *, says_yes: bool) -> None:
        self.says_yes = says_yes
        self.questions: list[str] = []

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.questions.append(params.message)
        return types.ElicitResult(action="accept", content={"confirm": self.says_yes})


def served(company: Company, scope: str, *words: str) -> StdioServerParameters:
    environment = os.environ | {"MAKEREADY_API_KEY": company.keys[scope], "MAKEREADY_BASE_URL": company.system.base_url}
    return StdioServerParameters(
        command=sys.executable, args=["-m", "makeready_client", "mcp", *words], env=environment
    )


def answer(result: Any) -> Any:
    (content,) = result.content
    return content.text if result.is_error else json.loads(content.text)


async def test_reads_are_tools_and_refusals_are_errors(company: Company) -> None:
    async with Client(served(company, "read")) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"getWhoami", "listTickets", "getUnit", "listEvents"} <= set(tools)
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
        assert not [name for name in tools if name.startswith(("create", "change", "delete", "record", "set"))]
        (unit,) = answer(await client.call_tool("listUnits", {"limit": 5}))["data"]
        assert answer(await client.call_tool("getUnit", {"unit_id": unit["entity_id"]})) == unit
        assert "404 not_found" in answer(await client.call_tool("getUnit", {"unit_id": 2**40}))
        assert "422 invalid_request" in answer(await client.call_tool("listTickets", {"status": "Lost"}))
        assert "no tool createTicket" in answer(await client.call_tool("createTicket", {"title": "Tap"}))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_each_write_is_confirmed_by_a_person(company: Company, mode: Any) -> None:
    (unit,) = company.walk("/units")
    ticket = {"unit_id": unit["entity_id"], "title": f"Tap {mode}", "category": "Leak"}
    before = len(list(company.walk("/tickets")))
    for person, written in ((Person(says_yes=False), 0), (Person(says_yes=True), 1)):
        server = served(company, "write", "--allow-writes")
        async with Client(server, elicitation_callback=person, mode=mode) as client:
            result = await client.call_tool("createTicket", ticket)
            assert (answer(result)["title"] == ticket["title"]) if written else "not confirmed" in answer(result)
        (question,) = person.questions
        assert ticket["title"] in question and "POST /tickets" in question
        assert len(list(company.walk("/tickets"))) == before + written
    async with Client(served(company, "write", "--allow-writes"), mode=mode) as client:  # it can ask nobody
        assert "not confirmed" in answer(await client.call_tool("createTicket", ticket))
    assert len(list(company.walk("/tickets"))) == before + 1


async def test_a_keys_scope_is_the_limit(company: Company) -> None:
    async with Client(served(company, "webhook_only", "--allow-writes")) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert names == {"createSubscription", "deleteSubscription", "getWhoami", "listSubscriptions"}
    async with Client(served(company, "write")) as client:
        tools = (await client.list_tools()).tools
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
