"""The SQL of subscriptions that integrations create and list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import BigInteger, Text, func, select, true, update
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection, Database
from chassis.db.statements import Query, Statement, param
from chassis.lists.paging import Pages
from chassis.writes.idempotency import IdempotentInsert, Ledger
from makeready.webhooks.v1.webhooks_pb2 import ListSubscriptionsRequest
from svc_webhooks.schema import as_list, idempotency
from svc_webhooks.subscriptions.records import SUBSCRIPTION
from svc_webhooks.tables.subscriptions import subscription

SUBSCRIPTIONS_PAGE = Pages(
    SUBSCRIPTION.select(subscription),
    subscription.c.id,
    {},
    request=ListSubscriptionsRequest,
)
# The default of `secret_since` has the real clock.
CREATE_SUBSCRIPTION = IdempotentInsert(idempotency, subscription, only_if={subscription.c.secret_since: true()})

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


# The filter

SET_FILTER = Ledger(idempotency)


class Filter(NamedTuple):
    """Of what a subscription hears: see tables/subscriptions.py."""

    property_ids: Sequence[int] | None
    categories: Sequence[str] | None
    priorities: Sequence[str] | None


_of_company = (
    subscription.c.company_id == param("company_id", BigInteger),
    subscription.c.id == param("sub_id", BigInteger),
)
_FILTER = Query(Filter, select(*(as_list(subscription.c[name]) for name in Filter._fields)).where(*_of_company))
_LOCK = Statement(select(subscription.c.id).where(*_of_company).with_for_update(key_share=True))
_CHANGE_FILTER = Statement(
    update(subscription)
    .where(*_of_company)
    .values(
        property_ids=param("property_ids", ARRAY(BigInteger)),
        categories=param("categories", ARRAY(Text)),
        priorities=param("priorities", ARRAY(Text)),
    )
)


async def filter_of(database: Database, company_id: int, sub_id: int) -> Filter | None:
    """None if the company has no subscription with that id."""
    return await _FILTER.row(database, company_id=company_id, sub_id=sub_id)


async def filter_locked(connection: Connection, company_id: int, sub_id: int) -> bool:
    """False if the company has no subscription with that id."""
    return await connection.value(_LOCK, company_id=company_id, sub_id=sub_id) is not None


async def change_filter(connection: Connection, company_id: int, sub_id: int, new: Filter) -> None:
    await connection.execute(_CHANGE_FILTER, company_id=company_id, sub_id=sub_id, **new._asdict())
