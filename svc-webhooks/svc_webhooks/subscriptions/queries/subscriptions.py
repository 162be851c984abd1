"""The SQL of subscriptions that integrations create and list."""

from __future__ import annotations

from sqlalchemy import BigInteger, func, select

from chassis.db.database import Connection
from chassis.db.statements import Statement, param
from chassis.lists.paging import Pages
from chassis.writes.idempotency import IdempotentInsert
from makeready.webhooks.v1.webhooks_pb2 import ListSubscriptionsRequest
from svc_webhooks.schema import idempotency
from svc_webhooks.subscriptions.records import SUBSCRIPTION
from svc_webhooks.tables.subscriptions import subscription

SUBSCRIPTIONS_PAGE = Pages(
    SUBSCRIPTION.select(subscription),
    subscription.c.id,
    {},
    request=ListSubscriptionsRequest,
)
CREATE_SUBSCRIPTION = IdempotentInsert(idempotency, subscription)

# Namespace of the advisory locks under which a company's subscriptions are counted and created, one for each company.
_COUNT_LOCK = 0x73756273 << 32

_COUNT = Statement(
    select(func.count()).select_from(subscription).where(subscription.c.company_id == param("company_id", BigInteger))
)


def count_lock(company_id: int) -> int:
    """The number of the company's advisory lock. Two companies may share one, and wait for each other then."""
    return _COUNT_LOCK | (company_id & 0xFFFFFFFF)


async def subscriptions_counted(connection: Connection, company_id: int) -> int:
    count: int = await connection.value(_COUNT, company_id=company_id)
    return count
