"""Saved views: lists with filters that people have saved under a name, for themselves or for all of their company.

A view belongs to the person who saved it. Others see it if it is shared; they, and its person, may have it as their
default for its list. Administrators may rename and remove every shared one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import asyncpg
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from chassis.db.database import Connection, Database
from chassis.db.statements import Query, Statement, param
from console.tables import default_view, saved_view

NAME_CHARACTERS_MAX = 60
QUERY_CHARACTERS_MAX = 2000
VIEWS_MAX = 40
"""Of one person and list."""
SHOWN_MAX = 60
"""Of one list: a person's default and own ones first."""


class SavedView(NamedTuple):
    """One view as a person sees it. query: what the list's address has after "?"."""

    id: int
    person: str
    list: str
    query: str
    name: str
    is_shared: bool
    is_default: bool


def _number(name: str) -> Any:
    return param(name, sa.BigInteger)


def _text(name: str) -> Any:
    return param(name, sa.Text)


_is_own = saved_view.c.person == _text("person")
_of_company = saved_view.c.company_id == _number("company_id")
_seen = (
    sa.select(
        saved_view.c.id, saved_view.c.person, saved_view.c.list, saved_view.c.query, saved_view.c.name,
        saved_view.c.is_shared, default_view.c.view_id.is_not(None).label("is_default"),
    )
    .select_from(
        saved_view.outerjoin(
            default_view,
            sa.and_(default_view.c.view_id == saved_view.c.id, default_view.c.person == _text("person")),
        )
    )
    .where(_of_company, sa.or_(_is_own, saved_view.c.is_shared))
)  # fmt: skip
_LIST = Query(
    SavedView,
    _seen.where(saved_view.c.list == _text("list"))
    .order_by(default_view.c.view_id.is_(None), _is_own.desc(), sa.func.lower(saved_view.c.name), saved_view.c.id)
    .limit(SHOWN_MAX),
)
_ONE = Query(SavedView, _seen.where(saved_view.c.id == _number("view_id")))
_COUNT = Statement(
    sa.select(sa.func.count()).where(_of_company, _is_own, saved_view.c.list == _text("list")).select_from(saved_view)
)
_ADD = Statement(
    insert(saved_view)
    .values(
        {
            name: param(name, saved_view.c[name].type)
            for name in ("company_id", "person", "act", "list", "query", "name", "is_shared")
        }
    )
    .on_conflict_do_nothing()
    .returning(saved_view.c.id)
)
_BY_ACT = Statement(sa.select(saved_view.c.id).where(_of_company, saved_view.c.act == _text("act")))
_NAMESAKE = Statement(
    sa.select(saved_view.c.id).where(
        _of_company,
        _is_own,
        saved_view.c.list == _text("list"),
        saved_view.c.name == _text("name"),
        saved_view.c.id != _number("view_id"),
    )
)
_CHANGE = Statement(
    sa.update(saved_view)
    .where(_of_company, saved_view.c.id == _number("view_id"))
    .values(name=_text("name"), is_shared=param("is_shared", sa.Boolean), query=_text("query"))
)
_REMOVE = Statement(sa.delete(saved_view).where(_of_company, saved_view.c.id == _number("view_id")))
_default = (_number("company_id"), _text("person"), _text("list"), saved_view.c.id)
# A view that was removed since is nobody's default.
_still_there = sa.select(*_default).where(_of_company, saved_view.c.id == _number("view_id"))
_SET_DEFAULT = Statement(
    insert(default_view)
    .from_select(
        ["company_id", "person", "list", "view_id"],
        _still_there.with_for_update(read=True, key_share=True, of=saved_view),
    )
    .on_conflict_do_update(constraint=default_view.primary_key, set_={"view_id": _number("view_id")})
)
_DROP_DEFAULT = Statement(
    sa.delete(default_view).where(
        default_view.c.company_id == _number("company_id"),
        default_view.c.person == _text("person"),
        default_view.c.view_id == _number("view_id"),
    )
)
_FORGET_VIEWS = Statement(sa.delete(saved_view).where(_of_company, _is_own, sa.not_(saved_view.c.is_shared)))
_FORGET_DEFAULTS = Statement(
    sa.delete(default_view).where(
        default_view.c.company_id == _number("company_id"), default_view.c.person == _text("person")
    )
)


_PEOPLE_MAX = 500
_people = sa.union(
    *(
        sa.select(table.c.company_id, table.c.person).where(
            sa.tuple_(table.c.company_id, table.c.person) > sa.tuple_(_number("company_id"), _text("person"))
        )
        for table in (saved_view.alias(), default_view.alias())
    )
).subquery()
_PEOPLE = Statement(
    sa.select(_people.c.company_id, _people.c.person)
    .order_by(_people.c.company_id, _people.c.person)
    .limit(_PEOPLE_MAX)
)


class NameTakenError(Exception):
    """The person has another view of the list with this name. view_id: its id."""

    def __init__(self, view_id: int) -> None:
        super().__init__()
        self.view_id = view_id


class TooManyViewsError(Exception):
    """The person has VIEWS_MAX views of the list."""


class SavedViews:
    """The views of all companies. Every method raises DatabaseUnavailable."""

    def __init__(self, database: Callable[[], Database]) -> None:
        """database: the open database; raises DatabaseUnavailable before it is open."""
        self._database = database

    async def of_list(self, company_id: int, person: str, path: str) -> Sequence[SavedView]:
        """What this person sees above a list: their default, their own views, then those that others share."""
        return await _LIST.rows(self._database(), company_id=company_id, person=person, list=path)

    async def find(self, company_id: int, person: str, view_id: int) -> SavedView | None:
        """A view that this person sees."""
        return await _ONE.row(self._database(), company_id=company_id, person=person, view_id=view_id)

    async def add(
        self, company_id: int, person: str, act: str, path: str, query: str, name: str, *, shared: bool, default: bool
    ) -> int:
        """Saves a view; returns its id. The same form again is the same view. act: the form's token.

        Raises NameTakenError and TooManyViewsError."""
        async with self._database().transaction() as connection:
            view_id: int | None = await connection.value(_BY_ACT, company_id=company_id, act=act)
            if view_id is not None:
                return view_id
            of_list = {"company_id": company_id, "person": person, "list": path}
            if await connection.value(_COUNT, **of_list) >= VIEWS_MAX:
                raise TooManyViewsError
            await _check_name(connection, 0, name=name, **of_list)
            view_id = await connection.value(_ADD, act=act, query=query, name=name, is_shared=shared, **of_list)
            if view_id is None:  # the same form, or the same name, at this instant
                view_id = await connection.value(_BY_ACT, company_id=company_id, act=act)
                if view_id is None:
                    await _check_name(connection, 0, name=name, **of_list)
            assert view_id is not None
            if default:
                await connection.execute(_SET_DEFAULT, view_id=view_id, **of_list)
        return view_id

    async def change(
        self, company_id: int, person: str, view: SavedView, name: str, query: str, *, shared: bool, default: bool
    ) -> None:
        """Stores a view's name, filters and who sees it, and whether it is this person's default.

        Raises NameTakenError."""
        values = {"name": name, "query": query, "is_shared": shared}
        try:
            async with self._database().transaction() as connection:
                of_owner = {"company_id": company_id, "person": view.person, "list": view.list}
                await _check_name(connection, view.id, name=name, **of_owner)
                await connection.execute(_CHANGE, company_id=company_id, view_id=view.id, **values)
                await _set_default(connection, company_id, person, view, default=default)
        except asyncpg.UniqueViolationError:  # at this instant
            raise NameTakenError(view.id) from None

    async def set_default(self, company_id: int, person: str, view: SavedView, *, default: bool) -> None:
        """Whether the list opens with this view for this person."""
        async with self._database().transaction() as connection:
            await _set_default(connection, company_id, person, view, default=default)

    async def remove(self, company_id: int, view_id: int) -> None:
        """Removes a view, and what is a default of it."""
        await self._database().execute(_REMOVE, company_id=company_id, view_id=view_id)

    async def people(self, after: tuple[int, str]) -> Sequence[tuple[int, str]]:
        """The next companies and people who have views or defaults, in their order; 500 at most."""
        rows = await self._database().rows(_PEOPLE, company_id=after[0], person=after[1])
        return [(row["company_id"], row["person"]) for row in rows]

    async def forget(self, company_id: int, person: str) -> None:
        """Removes what only this person could see. What they share stays with the company."""
        async with self._database().transaction() as connection:
            await connection.execute(_FORGET_VIEWS, company_id=company_id, person=person)
            await connection.execute(_FORGET_DEFAULTS, company_id=company_id, person=person)


async def _check_name(connection: Connection, view_id: int, **values: object) -> None:
    namesake: int | None = await connection.value(_NAMESAKE, view_id=view_id, **values)
    if namesake is not None:
        raise NameTakenError(namesake)


async def _set_default(connection: Connection, company_id: int, person: str, view: SavedView, *, default: bool) -> None:
    values = {"company_id": company_id, "person": person, "view_id": view.id}
    if default:
        await connection.execute(_SET_DEFAULT, list=view.list, **values)
    else:
        await connection.execute(_DROP_DEFAULT, **values)
