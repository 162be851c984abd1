"""Jobs: what a person asked for, how far it is, and who works on it.

A task of a job (`reading`, `checking`, `running`) belongs to the runner whose claim has not ended. Each write of a
runner names it, so one that lost its claim writes nothing. A runner stores what it has done with each batch; the next
one goes on from there.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from chassis.db.database import Connection, Database
from chassis.db.statements import Query, Statement, param
from console.tables import job, reject
from importing.passes import Outcome
from importing.undo import UndoOutcome

READING, MAPPING, CHECKING, CHECKED = "reading", "mapping", "checking", "checked"
RUNNING, DONE, STOPPED, CANCELLED = "running", "done", "stopped", "cancelled"
STATES = (READING, MAPPING, CHECKING, CHECKED, RUNNING, DONE, STOPPED, CANCELLED)
UNDER_WAY = (READING, CHECKING, RUNNING)
CLAIM = datetime.timedelta(seconds=15)
ATTEMPTS_MAX = 5
KEPT = datetime.timedelta(days=30)
PAGE_ROWS = 50


class Job(NamedTuple):
    """A row of the table `job`."""

    id: int
    company_id: int
    act: str
    person: str
    file_name: str
    file_bytes: int
    stored_as: str
    reading: str
    state: str
    stopped_in: str
    fault: str
    kind: str
    mapping: str
    events: bool
    facts: str
    outcome: str
    position: int
    undoes: bool
    undo: str
    run: int
    cancels: bool
    permit: str
    runner: str
    lease_until: datetime.datetime | None
    attempts: int
    uploaded_at: datetime.datetime
    started_at: datetime.datetime | None
    ended_at: datetime.datetime | None

    @property
    def result(self) -> Outcome:
        """The outcome so far."""
        return msgspec.json.decode(self.outcome, type=Outcome, dec_hook=lambda kind, value: kind(value))

    @property
    def undone(self) -> UndoOutcome:
        """The outcome of its undo so far."""
        return msgspec.json.decode(self.undo, type=UndoOutcome)

    @property
    def can_be_undone(self) -> bool:
        """Whether it has imported something, all of it or a part."""
        was_run = self.state == DONE or (self.state in (STOPPED, CANCELLED) and self.stopped_in == RUNNING)
        return self.undoes or was_run

    @property
    def was_dry(self) -> bool:
        """Whether the outcome is that of a dry run."""
        return not self.undoes and self._was_dry

    @property
    def _was_dry(self) -> bool:
        return self.state in (CHECKING, CHECKED) or self.stopped_in == CHECKING


def _number(name: str) -> Any:
    return param(name, sa.BigInteger)


def _text(name: str) -> Any:
    return param(name, sa.Text)


_mine = (job.c.company_id == _number("company_id"), job.c.id == _number("job_id"))
_led = (job.c.id == _number("job_id"), job.c.runner == _text("held_by"), job.c.lease_until > sa.func.clock_timestamp())
_claim_end = sa.func.clock_timestamp() + sa.literal_column(f"interval '{CLAIM.seconds} seconds'")


def _under_way(row: Any = job) -> Any:
    return sa.or_(*(row.c.state == sa.literal_column(f"'{state}'") for state in UNDER_WAY))


_free = {"runner": "", "lease_until": None, "permit": "", "cancels": False}


def _has_lease(row: Any) -> Any:
    return sa.and_(row.c.lease_until.is_not(None), row.c.lease_until > sa.func.clock_timestamp())


def _tasks_of(row: Any) -> Any:
    """How many tasks of the row's company are worked on."""
    other = job.alias()
    return (
        sa.select(sa.func.count())
        .select_from(other)
        .where(_under_way(other), other.c.company_id == row.c.company_id, _has_lease(other))
        .scalar_subquery()
    )


_NEW = Statement(
    insert(job)
    .values(
        {
            name: param(name, job.c[name].type)
            for name in ("company_id", "act", "person", "file_name", "file_bytes", "stored_as", "reading")
        }
    )
    .on_conflict_do_nothing(constraint="job_act")
    .returning(job.c.id)
)
# Locked: a lock is a write, so the answer waits until the standby has the job too, see `chassis.writes.idempotency`.
_BY_ACT = Statement(
    sa.select(job.c.id)
    .where(job.c.company_id == _number("company_id"), job.c.act == _text("act"))
    .with_for_update(read=True, key_share=True)
)
_ONE = Query(Job, sa.select(job).where(*_mine))
_BY_ID = Query(Job, sa.select(job).where(job.c.id == _number("job_id")))
_LIST = Query(
    Job,
    sa.select(job)
    .where(
        job.c.company_id == _number("company_id"),
        job.c.id < _number("before"),
        sa.or_(_text("state") == "", job.c.state == _text("state")),
    )
    .order_by(job.c.id.desc())
    .limit(PAGE_ROWS + 1),
)
_READ_AGAIN = Statement(
    sa.update(job)
    .where(*_mine, sa.not_(_under_way()), job.c.state != DONE, job.c.stopped_in != RUNNING)
    .values(
        state=READING,
        reading=_text("reading"),
        kind="",
        mapping="",
        outcome="{}",
        position=0,
        fault="",
        stopped_in="",
        attempts=0,
    )
    .returning(job.c.id)
)
_MAP = Statement(
    sa.update(job)
    .where(*_mine, sa.not_(_under_way()), job.c.facts != "{}")
    .values(
        state=CHECKING,
        kind=_text("kind"),
        mapping=_text("mapping"),
        permit=_text("permit"),
        run=job.c.run + 1,
        outcome="{}",
        position=0,
        fault="",
        stopped_in="",
        undoes=sa.false(),
        undo="{}",
        attempts=0,
        started_at=sa.func.clock_timestamp(),
        ended_at=None,
    )
    .returning(job.c.id)
)
# Whether the job has imported something: see `Job.can_be_undone`.
_has_run = sa.or_(
    job.c.undoes,
    job.c.state == DONE,
    sa.and_(
        job.c.state.in_([sa.literal_column("'stopped'"), sa.literal_column("'cancelled'")]), job.c.stopped_in == RUNNING
    ),
)


def _undoing(state: str, *conditions: Any) -> Statement:
    """Begins the check of an undo, or the undo."""
    return Statement(
        sa.update(job)
        .where(*_mine, sa.not_(_under_way()), *conditions)
        .values(
            state=state,
            undoes=sa.true(),
            undo="{}",
            permit=_text("permit"),
            fault="",
            stopped_in="",
            attempts=0,
            started_at=sa.func.clock_timestamp(),
            ended_at=None,
        )
        .returning(job.c.id)
    )


_CHECK_UNDO = _undoing(CHECKING, _has_run)
_UNDO = _undoing(RUNNING, job.c.undoes, job.c.state == CHECKED)
_UNDONE = Statement(
    sa.update(job).where(*_led).values(undo=_text("undo"), lease_until=_claim_end, attempts=0).returning(job.c.cancels)
)
_RUN = Statement(
    sa.update(job)
    .where(*_mine, job.c.state == CHECKED, sa.not_(job.c.undoes))
    .values(
        state=RUNNING,
        events=param("events", sa.Boolean),
        permit=_text("permit"),
        run=job.c.run + 1,
        outcome="{}",
        position=0,
        attempts=0,
        started_at=sa.func.clock_timestamp(),
        ended_at=None,
    )
    .returning(job.c.id)
)
_GO_ON = Statement(
    sa.update(job)
    .where(
        *_mine,
        job.c.state.in_([sa.literal_column("'stopped'"), sa.literal_column("'cancelled'")]),
        job.c.stopped_in == RUNNING,
    )
    .values(state=RUNNING, permit=_text("permit"), fault="", stopped_in="", attempts=0, ended_at=None)
    .returning(job.c.id)
)
_CANCEL = Statement(sa.update(job).where(*_mine, _under_way()).values(cancels=True).returning(job.c.id))
_DELETE = Statement(sa.delete(job).where(*_mine, sa.not_(_under_way())).returning(job.c.stored_as))
_OLD = Query(
    Job,
    sa.select(job)
    .where(
        job.c.uploaded_at < sa.func.clock_timestamp() - sa.literal_column(f"interval '{KEPT.days} days'"),
        sa.not_(_under_way()),
    )
    .order_by(job.c.uploaded_at)
    .limit(100),
)
_is_due = sa.and_(_under_way(), sa.not_(job.c.cancels), sa.not_(_has_lease(job)))
# The first of the company that has the fewest under way, so that none waits for all the tasks of another.
_DUE = sa.select(job.c.id).where(_is_due).order_by(_tasks_of(job), job.c.id).limit(1).with_for_update(skip_locked=True)
_CLAIM = Statement(
    sa.update(job)
    .where(job.c.id == _DUE.scalar_subquery())
    .values(runner=_text("new_runner"), lease_until=_claim_end, attempts=job.c.attempts + 1)
    .returning(job.c.id)
)
_RENEW = Statement(sa.update(job).where(*_led).values(lease_until=_claim_end).returning(job.c.cancels))
_RELEASE = Statement(sa.update(job).where(job.c.runner == _text("held_by")).values(lease_until=None))
_leaving = job.alias()
# The newest of these runners' tasks whose company has another one, if a company waits that has none.
_MAKE_ROOM = Statement(
    sa.select(_leaving.c.runner)
    .where(
        _leaving.c.runner == sa.func.any(param("runners", sa.ARRAY(sa.Text))),
        _has_lease(_leaving),
        _tasks_of(_leaving) > 1,
        sa.exists(sa.select(job.c.id).where(_is_due, _tasks_of(job) == 0)),
    )
    .order_by(_leaving.c.id.desc())
    .limit(1)
)
_END_CANCELLED = Statement(
    sa.update(job)
    .where(_under_way(), job.c.cancels, sa.not_(_has_lease(job)))
    .values(state=CANCELLED, stopped_in=job.c.state, ended_at=sa.func.clock_timestamp(), **_free)
)
_STOP = Statement(
    sa.update(job)
    .where(_under_way(), job.c.runner == _text("held_by"))
    .values(state=STOPPED, stopped_in=job.c.state, fault=_text("fault"), ended_at=sa.func.clock_timestamp(), **_free)
)
_FORGIVE = Statement(
    sa.update(job)
    .where(job.c.runner == _text("held_by"))
    .values(attempts=sa.case((job.c.attempts > 0, job.c.attempts - 1), else_=0))
)
_READ = Statement(
    sa.update(job)
    .where(*_led)
    .values(state=MAPPING, facts=_text("facts"), reading=_text("reading"), ended_at=sa.func.clock_timestamp(), **_free)
    .returning(job.c.id)
)
_PROGRESS = Statement(
    sa.update(job)
    .where(*_led)
    .values(outcome=_text("outcome"), position=_number("position"), lease_until=_claim_end, attempts=0)
    .returning(job.c.cancels)
)
_END = Statement(
    sa.update(job)
    .where(*_led)
    .values(
        state=_text("state"),
        stopped_in=_text("stopped_in"),
        fault=_text("fault"),
        outcome=_text("outcome"),
        ended_at=sa.func.clock_timestamp(),
        **_free,
    )
    .returning(job.c.id)
)
_CLEAR = Statement(sa.delete(reject).where(reject.c.job_id == _number("job_id")))
_REJECT = Statement(
    sa.insert(reject).from_select(
        ["job_id", "number", "kind", "text"],
        sa.select(
            _number("job_id"),
            sa.select(sa.func.coalesce(sa.func.max(reject.c.number), 0) + 1)
            .where(reject.c.job_id == _number("job_id"))
            .scalar_subquery(),
            _text("kind"),
            param("text", sa.LargeBinary),
        ),
    )
)
_KINDS = Statement(
    sa.select(reject.c.kind)
    .where(reject.c.job_id == _number("job_id"))
    .group_by(reject.c.kind)
    .order_by(sa.func.min(reject.c.number))
)
_PART = Statement(
    sa.select(reject.c.number, reject.c.text)
    .where(
        reject.c.job_id == _number("job_id"),
        reject.c.kind == _text("kind"),
        reject.c.number > param("after", sa.Integer),
    )
    .order_by(reject.c.number)
    .limit(1)
)


class ClaimLost(Exception):  # noqa: N818 - the work goes on elsewhere
    """Another runner has the job now."""


class Jobs:
    """The jobs of all companies. Every method raises DatabaseUnavailable."""

    def __init__(self, database: Database) -> None:
        self.database = database

    # What people do

    async def add(self, **values: Any) -> int:
        """A new job, whose file is read next; the id of an earlier one of the same form."""
        job_id: int | None = await self.database.value(_NEW, **values)
        if job_id is None:
            job_id = await self.database.value(_BY_ACT, company_id=values["company_id"], act=values["act"])
        assert job_id is not None
        return job_id

    async def of_form(self, company_id: int, token: str) -> int | None:
        """The job that a form has made. token: its form token."""
        job_id: int | None = await self.database.value(_BY_ACT, company_id=company_id, act=token)
        return job_id

    async def find(self, company_id: int, job_id: int) -> Job | None:
        return await _ONE.row(self.database, company_id=company_id, job_id=job_id)

    async def page(self, company_id: int, *, before: int, state: str) -> list[Job]:
        """PAGE_ROWS jobs and one more, the newest first. before: an id; state: "" for all."""
        return await _LIST.rows(self.database, company_id=company_id, before=before, state=state)

    async def read_again(self, company_id: int, job_id: int, reading: str) -> bool:
        """Begins to read the file in another way. Returns whether nothing was under way."""
        return await self.database.row(_READ_AGAIN, company_id=company_id, job_id=job_id, reading=reading) is not None

    async def check(self, company_id: int, job_id: int, *, kind: str, mapping: str, permit: str) -> bool:
        """Begins a dry run. Returns whether the job waited for one."""
        return await self._begin(_MAP, job_id, company_id=company_id, kind=kind, mapping=mapping, permit=permit)

    async def run(self, company_id: int, job_id: int, *, events: bool, permit: str) -> bool:
        """Begins the import that was checked. Returns whether it was."""
        return await self._begin(_RUN, job_id, company_id=company_id, events=events, permit=permit)

    async def _begin(self, statement: Statement, job_id: int, **values: Any) -> bool:
        """Begins a task without the rejected rows of an earlier one."""
        async with self.database.transaction() as connection:
            is_begun = await connection.row(statement, job_id=job_id, **values) is not None
            if is_begun:
                await connection.execute(_CLEAR, job_id=job_id)
        return is_begun

    async def check_undo(self, company_id: int, job_id: int, *, permit: str) -> bool:
        """Begins to look what an undo of the import would do. Returns whether it can be undone now."""
        return await self.database.row(_CHECK_UNDO, company_id=company_id, job_id=job_id, permit=permit) is not None

    async def undo(self, company_id: int, job_id: int, *, permit: str) -> bool:
        """Begins the undo that was checked. Returns whether it was."""
        return await self.database.row(_UNDO, company_id=company_id, job_id=job_id, permit=permit) is not None

    async def go_on(self, company_id: int, job_id: int, *, permit: str) -> bool:
        """Goes on with an import that stopped or was cancelled. Returns whether it was."""
        return await self.database.row(_GO_ON, company_id=company_id, job_id=job_id, permit=permit) is not None

    async def cancel(self, company_id: int, job_id: int) -> bool:
        """Ends the task under way after its batch. Returns whether there was one."""
        return await self.database.row(_CANCEL, company_id=company_id, job_id=job_id) is not None

    async def delete(self, company_id: int, job_id: int) -> str | None:
        """Deletes a job that no runner works on; returns the name of its file in the store."""
        stored_as: str | None = await self.database.value(_DELETE, company_id=company_id, job_id=job_id)
        return stored_as

    async def kinds_of_rejects(self, job_id: int) -> list[str]:
        return [row["kind"] for row in await self.database.rows(_KINDS, job_id=job_id)]

    async def rejects_after(self, job_id: int, kind: str, after: int) -> tuple[int, bytes] | None:
        """The next part of the rejects, with its number; None after the last."""
        row = await self.database.row(_PART, job_id=job_id, kind=kind, after=after)
        return None if row is None else (row["number"], row["text"])

    # What runners do

    async def claim(self, runner: str) -> int | None:
        """Takes a job with a task that nobody works on; None if there is none."""
        job_id: int | None = await self.database.value(_CLAIM, new_runner=runner)
        return job_id

    async def claimed(self, job_id: int) -> Job:
        row = await _BY_ID.row(self.database, job_id=job_id)
        if row is None:
            raise ClaimLost
        return row

    async def room(self, runners: Sequence[str]) -> str | None:
        """The runner, of these, that is to make room: its company has another task under way, while a company waits
        that has none. None if none is."""
        other_runner: str | None = await self.database.value(_MAKE_ROOM, runners=list(runners))
        return other_runner

    async def end_cancelled(self) -> None:
        """Ends the tasks that were cancelled and that nobody works on."""
        await self.database.execute(_END_CANCELLED)

    async def stop(self, runner: str, fault: str) -> None:
        """The runner has ended and nobody should go on by themselves: the job stops with the outcome that is stored."""
        await self.database.execute(_STOP, held_by=runner, fault=fault)

    async def renew(self, job_id: int, runner: str) -> bool:
        """Keeps the claim. Returns whether the task is to be cancelled. Raises ClaimLost."""
        row = await self.database.row(_RENEW, job_id=job_id, held_by=runner)
        if row is None:
            raise ClaimLost
        return bool(row["cancels"])

    async def release(self, runner: str) -> None:
        """The runner has ended before its task was done; another goes on at once."""
        await self.database.execute(_RELEASE, held_by=runner)

    async def forgive(self, runner: str) -> None:
        """The runner ended for a reason that is none of the job's: its attempt does not count."""
        await self.database.execute(_FORGIVE, held_by=runner)

    async def has_read(self, job_id: int, runner: str, facts: str, reading: str) -> None:
        """The file was read. reading: how it is read from now on. Raises ClaimLost."""
        values = {"facts": facts, "reading": reading}
        if await self.database.row(_READ, job_id=job_id, held_by=runner, **values) is None:
            raise ClaimLost

    async def acknowledge(
        self, job_id: int, runner: str, outcome: Outcome, position: int, rejects: Sequence[tuple[str, str]]
    ) -> bool:
        """Stores the outcome of a batch with its rejected rows. Returns whether to cancel. Raises ClaimLost."""
        async with self.database.transaction() as connection:
            values = {"job_id": job_id, "held_by": runner, "outcome": _json(outcome), "position": position}
            row = await connection.row(_PROGRESS, **values)
            if row is None:
                raise ClaimLost
            await self._reject(connection, job_id, rejects)
        return bool(row["cancels"])

    async def has_undone(self, job_id: int, runner: str, outcome: UndoOutcome) -> bool:
        """Stores what a part of an undo did. Returns whether to cancel. Raises ClaimLost."""
        values = {"job_id": job_id, "held_by": runner, "undo": msgspec.json.encode(outcome).decode()}
        row = await self.database.row(_UNDONE, **values)
        if row is None:
            raise ClaimLost
        return bool(row["cancels"])

    async def end(
        self,
        job_id: int,
        runner: str,
        state: str,
        outcome: Outcome,
        *,
        fault: str = "",
        stopped_in: str = "",
        rejects: Sequence[tuple[str, str]] = (),
    ) -> None:
        """The task has ended. Raises ClaimLost."""
        values = {"state": state, "stopped_in": stopped_in, "fault": fault, "outcome": _json(outcome)}
        async with self.database.transaction() as connection:
            if await connection.row(_END, job_id=job_id, held_by=runner, **values) is None:
                raise ClaimLost
            await self._reject(connection, job_id, rejects)

    async def old(self) -> list[Job]:
        """Some of the jobs that are older than KEPT, by PostgreSQL's clock: their files cannot be had again."""
        return await _OLD.rows(self.database)

    @staticmethod
    async def _reject(connection: Connection, job_id: int, rejects: Sequence[tuple[str, str]]) -> None:
        for kind, text in rejects:
            encoded = text.encode(errors="surrogateescape")
            await connection.execute(_REJECT, job_id=job_id, kind=kind, text=encoded)


def _json(outcome: Outcome) -> str:
    return msgspec.json.encode(outcome, enc_hook=str).decode()
