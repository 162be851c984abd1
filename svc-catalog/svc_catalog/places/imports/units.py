"""The import of units (spec 2.5), and of the buildings, floors and floorplans that they name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chassis.db.database import Connection
from chassis.imports.importer import Batch, ImportRow
from chassis.refusals import invalid_request
from makeready.events.v1.events_pb2 import References
from svc_catalog.places import import_queries as q
from svc_catalog.places import inputs
from svc_catalog.places.lookups import PROPERTIES_NAMED
from svc_catalog.places.references import UNIT_REFERENCES
from svc_catalog.places.rules import FLOORPLAN_MEASURES


async def save(connection: Connection, batch: Batch[inputs.UnitRow]) -> References:
    """Saves a batch's rows; returns the changed rows for the contexts that replicate them."""
    named = await PROPERTIES_NAMED.by_external_id(connection, batch.company_id, batch.named("property"))
    batch.resolve("property", named)
    await batch.lock_existing(connection, q.UNITS)
    batch.each(_check_unit_stays)
    measures = _Measures()
    batch.each(measures.take)
    await _find_places(connection, batch)
    await measures.save(connection, batch)
    units = await batch.save(connection, q.UNITS, {})
    names = await q.floorplan_names(connection, batch.company_id, units)
    return UNIT_REFERENCES.made_of([{**unit, "floorplan": names.get(unit["floorplan_id"])} for unit in units])


def _check_unit_stays(line: ImportRow[inputs.UnitRow]) -> None:
    # A unit cannot change its property: its tickets, turns and assets refer to the property too.
    if line.moves("property_id"):
        raise invalid_request("A unit stays in the property that it was first imported into.", "property")


class _Measures:
    """The floorplan measures in the rows of a batch."""

    def __init__(self) -> None:
        self._of: dict[tuple[int, str], dict[str, Any]] = {}

    def take(self, line: ImportRow[inputs.UnitRow]) -> None:
        """Raises Refusal if the row has measures without a floorplan, or an earlier row contradicts them."""
        stated = {name: value for name in FLOORPLAN_MEASURES if (value := getattr(line.row, name)) is not None}
        if not stated:
            return
        if line.row.floorplan is None:
            name = next(iter(stated))
            raise invalid_request(f"{name} belongs to a floorplan; name it in floorplan.", name)
        earlier = self._of.setdefault((line.values["property_id"], line.row.floorplan), {})
        for name, value in stated.items():
            if earlier.get(name, value) != value:
                raise invalid_request(f"An earlier row gives this floorplan another {name}.", name)
        earlier |= stated

    async def save(self, connection: Connection, batch: Batch[inputs.UnitRow]) -> None:
        """Stores changed measures, and marks the batch's units with such a floorplan as changed."""
        lines = {
            external_id: (line.values["floorplan_id"], stated)
            for external_id, line in batch.good.items()
            if (stated := self._of.get((line.values["property_id"], line.row.floorplan or "")))
        }
        ids = sorted({plan_id for plan_id, _ in lines.values()})
        if not lines:
            return
        property_ids = sorted({property_id for property_id, _ in self._of})
        stored = await q.floorplan_measures(connection, batch.company_id, property_ids, ids)
        differing = {}
        for external_id, (plan_id, stated) in lines.items():
            if stored[plan_id].differs(stated):
                differing[plan_id] = stored[plan_id]._replace(**stated)
                batch.good[external_id].touched = True
        batch.beside["floorplans"] = [
            q.MEASURES.change(stored[plan_id]._asdict(), after._asdict()) for plan_id, after in differing.items()
        ]
        await q.save_floorplan_measures(connection, list(differing.values()))


async def _find_places(connection: Connection, batch: Batch[inputs.UnitRow]) -> None:
    """Replaces the names of buildings, floors and floorplans with ids; creates those that do not exist."""
    lines = list(batch.good.values())

    def keys(field: str) -> dict[int, tuple[Any, ...]]:
        return {
            index: (line.values["property_id"], name)
            for index, line in enumerate(lines)
            if (name := getattr(line.row, field)) is not None
        }

    async def place(column: str, places: q.NamedPlaces, keys_of_lines: Mapping[int, tuple[Any, ...]]) -> None:
        ids = await places.ids(connection, batch.company_id, keys_of_lines.values())
        for index, line in enumerate(lines):
            if column.removesuffix("_id") in line.given:
                line.values[column] = ids[keys_of_lines[index]] if index in keys_of_lines else None

    await place("building_id", q.BUILDINGS, keys("building"))
    await place("floorplan_id", q.FLOORPLANS, keys("floorplan"))
    in_building = {
        index: (*key, lines[index].values.get("building_id", lines[index].stored("building_id")))
        for index, key in keys("floor").items()
    }
    await place("floor_id", q.FLOORS, in_building)
