"""The pages of saved views. A person saves the filters of a list, shares them with the company, and has a default.

Their own views people change as they like. One that somebody else shares they can open, and have as their default;
administrators may change and remove it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from aiohttp import web

from console.kit import links, viewing
from console.kit.browser_session import ADMINISTRATOR
from console.kit.context import Page, PageContext
from console.kit.texts import _
from console.kit.views import PATH, read_query, with_filters
from console.saved_views import NAME_CHARACTERS_MAX, VIEWS_MAX, NameTakenError, SavedView, TooManyViewsError


@dataclass
class ViewForm:
    """A view as a form has it. list: the list's path in pages.py; back: its address without filters; namesake: the
    person's view that has the name already, whose filters these may replace."""

    list: str
    back: str
    query: str
    name: str = ""
    shared: bool = False
    default: bool = False
    error: str = ""
    namesake: int = 0
    view: SavedView | None = None
    may_change: bool = True
    page: Page | None = field(default=None, repr=False)


def _read(context: PageContext) -> ViewForm:
    """What was sent. Raises HTTPNotFound for a list that the person cannot open."""
    sent = context.form
    page = viewing.page_of(context, sent.get("list", ""))
    if page is None:
        raise web.HTTPNotFound
    back = links.own_path(sent.get("back", "")).partition("?")[0]
    if "{" not in page.path or back == "/":
        back = page.path
    form = ViewForm(page.path, back, read_query(sent.get("query", "")), page=page)
    _read_words(context, form)
    return form


def _read_words(context: PageContext, form: ViewForm) -> None:
    text = context.form.get("name", "").replace("\0", " ").encode(errors="ignore").decode()
    form.name = " ".join(text.split())
    form.shared, form.default = "shared" in context.form, "default" in context.form
    if not form.name:
        form.error = _("Name is missing.")
    elif len(form.name) > NAME_CHARACTERS_MAX:
        form.error = _("Name may have %(count)s characters at most.") % {"count": NAME_CHARACTERS_MAX}


def _page(context: PageContext, form: ViewForm, status: int = 200) -> web.StreamResponse:
    here = form.page.menu[1] if form.page and form.page.menu else ""
    path = f"{PATH}/{form.view.id}" if form.view else PATH
    return context.render("views/view.html", status, here=here, form=form, path=path, name_max=NAME_CHARACTERS_MAX)


async def save(context: PageContext) -> web.StreamResponse:
    """Saves the filters of a list, or puts them in the place of those of a view with the same name."""
    form, person = _read(context), context.session.person
    if not form.error and not form.query:
        form.error = _("The list has no filters to save. Set some first.")
    if form.error:
        return _page(context, form, 422)
    views, address = context.site.saved_views, with_filters(form.back, form.query)
    try:
        if context.form.get("replace"):
            view = await _own(context, context.form["replace"])
            await views.change(
                person.company_id, person.actor, view, form.name, form.query, shared=form.shared, default=form.default
            )
            return context.redirect(address, _("“%(name)s” has these filters now.") % {"name": form.name})
        await views.add(
            person.company_id, person.actor, context.form_token, form.list, form.query, form.name,
            shared=form.shared, default=form.default,
        )  # fmt: skip
    except NameTakenError as taken:
        form.error, form.namesake = (
            _("You have a view of this list with that name. Choose another name."),
            taken.view_id,
        )
    except TooManyViewsError:
        form.error = _("You have %(count)s views of this list. Remove one first.") % {"count": VIEWS_MAX}
    if form.error:
        return _page(context, form, 422)
    return context.redirect(address, _("View “%(name)s” saved.") % {"name": form.name})


async def _find(context: PageContext, view_id: int) -> tuple[SavedView, Page]:
    """A view that this person sees, with its list. Raises HTTPNotFound."""
    person = context.session.person
    view = await context.site.saved_views.find(person.company_id, person.actor, view_id)
    page = viewing.page_of(context, view.list) if view else None
    if view is None or page is None:
        raise web.HTTPNotFound
    return view, page


async def _own(context: PageContext, text: str) -> SavedView:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise web.HTTPNotFound
    view, _page_of_list = await _find(context, int(text))
    if view.person != context.session.person.actor:
        raise web.HTTPNotFound
    return view


async def _form_of(context: PageContext) -> ViewForm:
    view, page = await _find(context, context.number("view_id"))
    may_change = view.person == context.session.person.actor or context.session.kind == ADMINISTRATOR
    back = links.own_path((context.form or context.query).get("back", "")).partition("?")[0]
    back = page.path if "{" not in page.path else back
    return ViewForm(
        page.path,
        back,
        view.query,
        view.name,
        view.is_shared,
        view.is_default,
        view=view,
        may_change=may_change,
        page=page,
    )


async def show(context: PageContext) -> web.StreamResponse:
    return _page(context, await _form_of(context))


async def change(context: PageContext) -> web.StreamResponse:
    """Changes the name, who sees it, and whether it is this person's default; or removes the view."""
    form, person = await _form_of(context), context.session.person
    view, views = form.view, context.site.saved_views
    assert view is not None
    if not form.may_change:
        await views.set_default(person.company_id, person.actor, view, default="default" in context.form)
        return context.redirect(_address(form), _("View changed."))
    if "remove" in context.form:
        await views.remove(person.company_id, view.id)
        return context.redirect(form.back, _("View “%(name)s” removed.") % {"name": view.name})
    _read_words(context, form)
    if not form.error:
        try:
            await views.change(
                person.company_id, person.actor, view, form.name, view.query, shared=form.shared, default=form.default
            )
        except NameTakenError:
            form.error = _("There is a view of this list with that name. Choose another name.")
    if form.error:
        return _page(context, form, 422)
    return context.redirect(_address(form), _("View changed."))


def _address(form: ViewForm) -> str:
    """The list with the view, where a list's address is known."""
    return with_filters(form.back, form.query) if form.back != "/" else "/"
