"""Imports: a file is uploaded, its columns are matched, all rows are checked, and then it is imported."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from aiohttp import web

from chassis.refusals import Refusal
from console.areas.imports import matching
from console.files import FileSizeError
from console.imports import jobs as states
from console.imports.jobs import STATES, Job, Jobs
from console.imports.keeper import KEEPER
from console.imports.looking import Facts, guessed
from console.kit import lists
from console.kit.context import PageContext
from console.kit.links import with_query
from console.kit.serving import Streamed
from console.kit.texts import _
from console.kit.uploads import Upload
from importing import delimiters, encodings, mapping_file
from importing.errors import ImportFault
from importing.kinds import KINDS, Kind
from importing.rows import Reading
from importing.run import Counts
from importing.undo import why_kept
from makeready.identity.v1 import sessions_pb2

HERE, PATH = "Imports", "/imports"
FILE_BYTES_MAX = 512 * 1024 * 1024
MAPPING_BYTES_MAX = 256 * 1024
# A form has its file, its fields and the lines between them.
FORM_BYTES_MAX, MAPPING_FORM_BYTES_MAX = FILE_BYTES_MAX + 1024 * 1024, MAPPING_BYTES_MAX + 1024 * 1024
NAME_BYTES_MAX = 180
ENDINGS = (".csv", ".jsonl", ".ndjson", ".xlsx", ".csv.gz", ".jsonl.gz", ".ndjson.gz")
ALL = "all"
# The owners of the kinds, whose RPCs the console's workers call.
CONTEXTS = {"gateway": "identity", "svc-catalog": "catalog", "svc-tickets": "tickets", "svc-occupancy": "occupancy"}
RUNS = tuple(f"{CONTEXTS[kind.service]}.{kind.rpc_name.replace('.', '/')}" for kind in KINDS.values())
UNDOES = tuple(f"common.ImportUndoService/{name}" for name in ("UndoImport", "ReleaseRecords"))
STATE_WORDS = {
    states.READING: ("slate", "clock", _("Reading")),
    states.MAPPING: ("amber", "half", _("Needs column matching")),
    states.CHECKING: ("blue", "clock", _("Checking")),
    states.CHECKED: ("amber", "check", _("Checked, not imported")),
    states.RUNNING: ("blue", "clock", _("Importing")),
    states.DONE: ("green", "check", "Imported"),
    states.STOPPED: ("red", "warn", _("Stopped")),
    states.CANCELLED: ("slate", "x", "Cancelled"),
}


# Of an import that is undone.
UNDO_WORDS = {
    states.CHECKING: ("blue", "clock", "Undo being checked"),
    states.CHECKED: ("amber", "check", "Undo checked, not done"),
    states.RUNNING: ("blue", "clock", "Being undone"),
    states.DONE: ("slate", "retry", "Undone"),
    states.STOPPED: ("red", "warn", "Undo stopped"),
    states.CANCELLED: ("slate", "x", "Undo cancelled"),
}


def tone(job: Job) -> tuple[str, str, str]:
    """The colour, the sign and the words of a job's state."""
    return (UNDO_WORDS if job.undoes else STATE_WORDS)[job.state]


def _jobs(context: PageContext) -> Jobs:
    """Raises DatabaseUnavailable while the console's database is away."""
    keeper = context.request.app[KEEPER]
    keeper.open_database()
    return keeper.jobs


def _company(context: PageContext) -> int:
    return context.session.person.company_id


async def _job(context: PageContext) -> Job:
    """The job of the path. Raises HTTPNotFound, also for another company's."""
    job = await _jobs(context).find(_company(context), context.number("import_id"))
    if job is None:
        raise web.HTTPNotFound
    return job


def _timezone(context: PageContext) -> str:
    """The company's, in which dates without an offset are read."""
    return context.session.person.timezone or "UTC"


def _path(job_id: int) -> str:
    return f"{PATH}/{job_id}"


async def list_imports(context: PageContext) -> web.StreamResponse:
    state = lists.chosen(context.query, "state", STATES)
    before = lists.number(context.query, "after") or 2**63 - 1
    jobs = await _jobs(context).page(_company(context), before=before, state=state)
    rows, more = jobs[: states.PAGE_ROWS], jobs[states.PAGE_ROWS :]
    return context.render(
        "imports/list.html",
        here=HERE,
        rows=rows,
        state=state,
        states=STATE_WORDS,
        tone=tone,
        next=rows[-1].id if more else 0,
        after=lists.number(context.query, "after"),
    )


async def show_new(context: PageContext) -> web.StreamResponse:
    return _new(context)


def _new(context: PageContext, error: str = "", field: str = "file") -> web.Response:
    return context.render(
        "imports/new.html",
        422 if error else 200,
        here=HERE,
        error=error,
        field=field,
        kinds=[kind] if (kind := _kind(context)) else KINDS.values(),
        kind=kind,
        sent=context.form,
        path=PATH,
    )


def _kind(context: PageContext) -> Kind | None:
    """The kind of record that the file is said to have; None: the columns tell."""
    return KINDS.get((context.form or context.query).get("kind", ""))


async def upload(context: PageContext) -> web.StreamResponse:
    """Stores the file, and makes the job that reads it."""
    jobs, company_id = _jobs(context), _company(context)
    if (done := await jobs.of_form(company_id, context.form_token)) is not None:
        return context.redirect(_path(done))
    try:
        reading = _reading(context)
    except ValueError as error:
        return _new(context, *error.args)
    async for file in context.uploads:
        return await _take(context, file, reading)
    return _new(context, _("Choose a file."))


async def _take(context: PageContext, file: Upload, reading: Reading) -> web.Response:
    """Stores one file, and makes its job."""
    jobs, company_id, name = _jobs(context), _company(context), _file_name(file.name)
    if not name:
        return _new(context, f"The file must be named {', '.join(ENDINGS[:4])}, or end with .gz behind that.")
    stored_as = f"imports/{company_id}/{secrets.token_urlsafe(24)}"
    size = Size()
    try:
        await context.site.files.save(stored_as, size.counted(file), bytes_max=FILE_BYTES_MAX)
    except FileSizeError:
        return _new(context, _("The file is larger than 512 MB. Compress it with gzip or split it."))
    try:
        if not size.bytes:
            return _new(context, _("The file is empty."))
        job_id = await jobs.add(
            company_id=company_id,
            act=context.form_token,
            person=context.session.person.name,
            file_name=name,
            file_bytes=size.bytes,
            stored_as=stored_as,
            reading=msgspec.json.encode(reading).decode(),
        )
        job = await jobs.find(company_id, job_id)
        is_used = job is not None and job.stored_as == stored_as
    except BaseException:
        is_used = True  # it may have been stored: the file of a job must never go before the job
        raise
    finally:
        if not size.bytes or not is_used:
            await context.site.files.delete(stored_as)
    context.request.app[KEEPER].wake()
    kind = _kind(context)
    return context.redirect(with_query(_path(job_id), {"kind": kind.name if kind else ""}))


class Size:
    """Counts the bytes of an upload as they pass."""

    def __init__(self) -> None:
        self.bytes = 0

    async def counted(self, upload: Upload) -> AsyncIterator[bytes]:
        async for part in upload.parts:
            self.bytes += len(part)
            yield part


def _file_name(text: str) -> str:
    """The name under which the file is read; empty if its ending is none that can be."""
    ending = next((suffix for suffix in sorted(ENDINGS, key=len, reverse=True) if text.lower().endswith(suffix)), "")
    stem = text[: len(text) - len(ending)].strip().lstrip(".")
    stem = stem.encode(errors="replace")[:NAME_BYTES_MAX].decode(errors="ignore") or "file"
    return f"{stem}{ending}" if ending else ""


def _reading(context: PageContext) -> Reading:
    """How the person says that the file is written. Raises ValueError with a sentence and the field."""
    options = {name: context.form.get(name, "").strip()[:100] for name in ("encoding", "delimiter", "sheet")}
    for name, check in (("encoding", encodings.codec), ("delimiter", delimiters.checked)):
        if options[name]:
            try:
                options[name] = check("\t" if options[name] == r"\t" else options[name])
            except ValueError as error:
                raise ValueError(f"{name.capitalize()} {error}.", name) from None
    return Reading(**options)


async def show_import(context: PageContext) -> web.StreamResponse:
    return await _show(context, await _job(context))


async def _show(
    context: PageContext,
    job: Job,
    status: int = 200,
    error: str = "",
    sent: matching.Matching | None = None,
    toml: str = "",
) -> web.Response:
    facts = msgspec.json.decode(job.facts, type=Facts)
    rejects = await _jobs(context).kinds_of_rejects(job.id)
    maps = job.state == states.MAPPING or context.query.get("step") == "columns" or sent is not None or bool(error)
    if job.state not in states.UNDER_WAY and "HX-Request" in context.request.headers:
        # The task has ended while the page was open: it is another page now, from its heading on.
        return web.Response(headers={"HX-Refresh": "true"})
    if maps and facts.columns and job.state not in states.UNDER_WAY:
        page = _matching(context, job, facts, sent, toml)
        return _render(
            context, "match", status, job, facts=facts, rejects=rejects, error=error, page=page, kinds=KINDS.values(),
            unmatched=_unmatched(facts, page.match),
            rules=matching.RULES, duplicates=matching.DUPLICATE_WORDS,
        )  # fmt: skip
    match = matching.from_toml(KINDS[job.kind], facts, job.mapping, _timezone(context)) if job.kind in KINDS else None
    unmatched = _unmatched(facts, match) if job.mapping else []
    return _render(context, "import", status, job, facts=facts, rejects=rejects, error=error, unmatched=unmatched)


def _unmatched(facts: Facts, match: matching.Matching | None) -> list[str]:
    """The columns of the file that no field comes from; none if a mapping says more than the form has."""
    if match is None:
        return []
    used = {choice.name for choice in match.choices}
    templates = " ".join(choice.text for choice in match.choices if choice.source == matching.TEMPLATE)
    names = (seen.name for seen in facts.columns)
    return [name for name in names if name and name not in used and f"{{{name}}}" not in templates]


def _render(context: PageContext, template: str, status: int, job: Job, **values: object) -> web.Response:
    """A page of a job, with what its templates share."""
    return context.render(
        f"imports/{template}.html", status, here=HERE, job=job, outcome=job.result, counts=job.result.counts,
        states=STATE_WORDS, tone=tone(job), undone=job.undone, why_kept=why_kept, path=_path(job.id), done=_done(job),
        can_fire=_can_fire(job), **values,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class MatchPage:
    """What the page that matches columns shows. kind: None until one is chosen or guessed; match: None without it,
    and for a mapping that says more than the form has."""

    kind: Kind | None
    match: matching.Matching | None
    samples: Mapping[str, Sequence[str]]
    toml: str
    is_guess: bool
    """Whether the kind is the one that the columns look like."""


def _matching(context: PageContext, job: Job, facts: Facts, sent: matching.Matching | None, toml: str) -> MatchPage:
    chosen = lists.chosen(context.query, "kind", KINDS) or (sent.kind.name if sent else "")
    name = chosen or (job.kind if job.kind in KINDS else "") or facts.kind
    kind = KINDS.get(name)
    choices = sent
    if choices is None and kind is not None:
        if job.mapping and job.kind == kind.name and not chosen:
            # One that says more than the form has is edited as TOML: the form would lose some of it.
            choices = matching.from_toml(kind, facts, job.mapping, _timezone(context))
        elif chosen or not job.mapping:
            choices = matching.proposed(kind, facts)
    samples = {column.name: column.samples for column in facts.columns}
    return MatchPage(kind, choices, samples, toml or job.mapping, not chosen and not job.kind)


async def check(context: PageContext) -> web.StreamResponse:
    """Stores the mapping and begins the dry run. `as=again`: with the mapping as it is."""
    job = await _job(context)
    if context.form.get("as") == "again" and job.kind:
        return await _begin_check(context, job, job.kind, job.mapping)
    facts = msgspec.json.decode(job.facts, type=Facts)
    toml = context.form.get("toml", "").replace("\r\n", "\n").strip()
    async for file in context.uploads:
        content = b"".join([part async for part in _bounded(file)])
        if len(content) > MAPPING_BYTES_MAX:
            return await _show(context, job, 422, "The mapping is larger than 256 KB.")
        toml = content.decode("utf-8-sig", "replace").replace("\r\n", "\n").strip() or toml
        break
    sent: matching.Matching | None = None
    try:
        if context.form.get("as") == "toml":
            if not toml:
                raise ImportFault("The mapping is missing: write it, or choose its file.")
            mapping = mapping_file.parsed(toml, "The mapping")
            kind = mapping.records[0][0].name if len(mapping.records) == 1 else ALL
        else:
            sent = _sent(context, facts)
            toml, kind = matching.written(sent, _timezone(context)), sent.kind.name
            mapping_file.parsed(toml, "The mapping")
    except _Unmatched as unmatched:
        return await _show(context, job, 422, _("Some required columns are not matched yet."), unmatched.matching)
    except ImportFault as fault:
        return await _show(context, job, 422, str(fault), sent, toml)
    return await _begin_check(context, job, kind, toml)


class _Unmatched(Exception):  # noqa: N818 - a form to fill in
    """The form lacks something."""

    def __init__(self, sent: matching.Matching) -> None:
        super().__init__()
        self.matching = sent


def _sent(context: PageContext, facts: Facts) -> matching.Matching:
    """The form. Raises ImportFault and _Unmatched."""
    chosen = KINDS.get(context.form.get("kind", ""))
    if chosen is None:
        raise ImportFault(_("Choose the record type."))
    sent = matching.read(chosen, facts, context.form)
    if sent.has_errors:
        raise _Unmatched(sent)
    return sent


async def _begin_check(context: PageContext, job: Job, kind: str, mapping: str) -> web.Response:
    permit = await _permit(context)
    if not await _jobs(context).check(job.company_id, job.id, kind=kind, mapping=mapping, permit=permit):
        return await _moved(context)
    context.request.app[KEEPER].wake()
    return context.redirect(_path(job.id))


async def choose_sheet(context: PageContext) -> web.StreamResponse:
    """Reads another sheet of the workbook."""
    job = await _job(context)
    facts, sheet = msgspec.json.decode(job.facts, type=Facts), context.form.get("sheet", "")
    if sheet not in facts.sheets:
        return await _show(context, job, 422, _("Choose one of the sheets."))
    reading = msgspec.json.encode(Reading(sheet=sheet)).decode()
    if not await _jobs(context).read_again(job.company_id, job.id, reading):
        return await _moved(context)
    context.request.app[KEEPER].wake()
    return context.redirect(_path(job.id))


async def check_plain(context: PageContext) -> web.StreamResponse:
    """Begins the dry run of a file whose columns have the fields' names."""
    job = await _job(context)
    facts = msgspec.json.decode(job.facts, type=Facts)
    kind = guessed([column.name for column in facts.columns])
    if kind is None or not facts.is_plain:
        return await _show(context, job, 422, _("The column names do not match any record type: match them."))
    match = matching.proposed(kind, facts)
    needs_dates = any(choice.rule == matching.DATE for choice in match.choices)
    return await _begin_check(
        context, job, kind.name, matching.written(match, _timezone(context)) if needs_dates else ""
    )


async def _bounded(file: Upload) -> AsyncIterator[bytes]:
    """The parts of a file, up to a little more than MAPPING_BYTES_MAX."""
    size = 0
    async for part in file.parts:
        size += len(part)
        yield part
        if size > MAPPING_BYTES_MAX:
            return


async def run(context: PageContext) -> web.StreamResponse:
    job = await _job(context)
    permit = await _permit(context)
    events = _can_fire(job) and bool(context.form.get("events"))
    if not await _jobs(context).run(job.company_id, job.id, events=events, permit=permit):
        return await _moved(context)
    context.request.app[KEEPER].wake()
    return context.redirect(_path(job.id))


async def check_undo(context: PageContext) -> web.StreamResponse:
    """Begins to look what an undo of the import would do."""
    job = await _job(context)
    if not await _jobs(context).check_undo(job.company_id, job.id, permit=await _permit(context)):
        return await _moved(context)
    context.request.app[KEEPER].wake()
    return context.redirect(_path(job.id))


async def undo(context: PageContext) -> web.StreamResponse:
    """Undoes the import. Its person confirms who they are: the permit of the task opens nothing that asks for it."""
    job = await _job(context)
    if not context.session.can_confirm:
        raise Refusal(403, "step_up_required", _("Confirm who you are first."))
    if not await _jobs(context).undo(job.company_id, job.id, permit=await _permit(context)):
        return await _moved(context)
    context.request.app[KEEPER].wake()
    return context.redirect(_path(job.id))


async def go_on(context: PageContext) -> web.StreamResponse:
    job = await _job(context)
    if not await _jobs(context).go_on(job.company_id, job.id, permit=await _permit(context)):
        return await _moved(context)
    context.request.app[KEEPER].wake()
    return context.redirect(_path(job.id))


async def cancel(context: PageContext) -> web.StreamResponse:
    job = await _job(context)
    if not await _jobs(context).cancel(job.company_id, job.id):
        return await _moved(context)
    context.request.app[KEEPER].wake()
    return context.redirect(_path(job.id), _("Cancelling after the current batch."))


async def delete(context: PageContext) -> web.StreamResponse:
    job = await _job(context)
    # The job first: a file without a job is of no use to anybody, a job without its file would be a dead end.
    stored_as = await _jobs(context).delete(job.company_id, job.id)
    if stored_as is None:
        return await _moved(context)
    await context.site.files.delete(stored_as)
    return context.redirect(
        PATH, _("“%(file)s” and its report deleted. Imported records are kept.") % {"file": job.file_name}
    )


async def _moved(context: PageContext) -> web.Response:
    """Somebody else was faster, or the form was sent twice: the page says where the import is now."""
    job = await _jobs(context).find(_company(context), context.number("import_id"))
    if job is None:
        raise web.HTTPNotFound
    return context.redirect(_path(job.id), f"This import is in another state now: {tone(job)[2].lower()}.")


async def download_rejects(context: PageContext) -> web.StreamResponse:
    """The rejected rows of a kind, as a file that can be corrected and imported again."""
    job, jobs = await _job(context), _jobs(context)
    kind = context.query.get("kind", "")
    part = await jobs.rejects_after(job.id, kind, 0)
    if part is None:
        raise web.HTTPNotFound

    async def parts() -> AsyncGenerator[bytes]:
        chunk: tuple[int, bytes] | None = part
        while chunk is not None:
            yield chunk[1]
            chunk = await jobs.rejects_after(job.id, kind, chunk[0])

    return Streamed(parts(), _attached(_rejects_name(job.file_name, kind), job.file_name))


async def download_mapping(context: PageContext) -> web.StreamResponse:
    job = await _job(context)
    if not job.mapping:
        raise web.HTTPNotFound
    return web.Response(body=job.mapping.encode(), headers=_attached(f"{job.kind}-mapping.toml", ".toml"))


def _rejects_name(file_name: str, kind: str) -> str:
    plain = file_name.removesuffix(".gz")
    stem, _, ending = plain.rpartition(".")
    return f"{stem}.rejects{'-' + kind if kind else ''}.{'csv' if ending.lower() == 'xlsx' else ending}"


def _attached(name: str, source_name: str) -> dict[str, str]:
    plain = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._- ") else "_" for sign in name)
    if source_name.endswith(".toml"):
        kind = "application/toml"
    else:
        kind = "text/csv" if ".csv" in source_name or ".xlsx" in source_name else "text/plain"
    return {"Content-Disposition": f'attachment; filename="{plain}"', "Content-Type": f"{kind}; charset=utf-8"}


async def _permit(context: PageContext) -> str:
    """With it the worker calls as this administrator. Raises Refusal."""
    answer = await context.site.sessions.call(
        sessions_pb2.MakePermitRequest(session=context.session.text), sessions_pb2.MakePermitResponse
    )
    if not answer.permit:
        raise Refusal(401, "no_session", "The session has ended; sign in again.")
    return str(answer.permit)


def _can_fire(job: Job) -> bool:
    """Whether a kind of this import has public events."""
    kinds = [KINDS[result.kind] for result in job.result.kinds] or ([KINDS[job.kind]] if job.kind in KINDS else [])
    return any(_has_events(kind) for kind in kinds)


def _has_events(kind: Kind) -> bool:
    return "events" in kind.rpc.input_type.fields_by_name


def _done(job: Job) -> int:
    """How much of the pass under way is done, in percent."""
    if job.state == states.DONE:
        return 100
    return min(99, job.position * 100 // max(1, job.file_bytes))


def sentence(counts: Counts, *, dry_run: bool) -> str:
    """The counts as the command line says them."""
    would = "would be " if dry_run else ""
    skipped = f" {counts.skipped:,} rows skipped by the mapping." if counts.skipped else ""
    return (
        f"{counts.settled:,} rows read: {counts.created:,} {would}created, {counts.changed:,} {would}changed, "
        f"{counts.unchanged:,} unchanged, {counts.rejected:,} rejected.{skipped}"
    )
