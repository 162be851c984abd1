"""Types of import contracts that `.importlinter` uses besides those of import-linter.

Each of them has a table: a line is `name = values`, and a line without `=` continues the one before it.
"""

from __future__ import annotations

from typing import cast

import grimp
from importlinter import Contract, ContractCheck, fields, output
from importlinter.contracts.layers import LayersContract

Table = dict[str, str]


class TableField(fields.Field[Table]):
    """Lines of `name = values`, by name."""

    def parse(self, raw_data: str | list[str]) -> Table:
        table: Table = {}
        name = ""
        for line in [raw_data] if isinstance(raw_data, str) else raw_data:
            head, equals, values = (part.strip() for part in line.rpartition("="))
            if not equals and name:
                table[name] += f" {values}"
            elif not head or head in table:
                raise fields.ValidationError(f"'{line}' is no line `name = values` with a name of its own.")
            else:
                name, table[head] = head, values
        return table


class LayersOfPackages(Contract):
    """The layers of each package, the highest first: `package = high > left | right > low`.

    As the type `layers` with one container, for several packages. Each package must name all of its modules.
    """

    type_name = "layers_of_packages"

    packages = TableField()
    exhaustive_ignores = fields.SetField(subfield=fields.StringField(), required=False)

    def validate(self) -> None:
        ignored = self.contract_options.get("exhaustive_ignores", [])
        self.contracts = [
            LayersContract(
                self.name,
                self.session_options,
                {
                    "containers": [package],
                    "layers": [layer.strip() for layer in layers.split(">")],
                    "exhaustive": "True",
                    "exhaustive_ignores": ignored,
                },
            )
            for package, layers in cast(Table, self.packages).items()
        ]

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        checks = [contract.check(graph, verbose) for contract in self.contracts]
        return ContractCheck(kept=all(check.kept for check in checks), metadata={"checks": checks})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for contract, one_check in zip(self.contracts, check.metadata["checks"], strict=True):
            if not one_check.kept:
                contract.render_broken_contract(one_check)


class _Permissions(Contract):
    """Each direct import needs a permission, and each permission an import that needs it."""

    table: Table

    def permissions(self) -> set[str]:
        """All that the contract gives."""
        raise NotImplementedError

    def needed(self, importer: str, imported: str) -> str | None:
        """The permission that this import needs; None if the contract does not judge it."""
        raise NotImplementedError

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        """Raises ValueError if a name of the table is no module's."""
        for name in self.table:
            if name not in graph.modules:
                raise ValueError(f"Module {name} does not exist.")
        permissions = self.permissions()
        used = set()
        illegal = []
        for importer in sorted(graph.modules):
            for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                permission = self.needed(importer, imported)
                if permission in permissions:
                    used.add(permission)
                elif permission is not None:
                    illegal.append(f"{importer} -> {imported}")
        unused = sorted(permissions - used)
        return ContractCheck(kept=not (illegal or unused), metadata={"illegal": illegal, "unused": unused})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for title, lines in (
            ("Nothing permits these imports:", check.metadata["illegal"]),
            ("No import needs these permissions; remove them:", check.metadata["unused"]),
        ):
            if lines:
                output.print(title)
                for line in lines:
                    output.print_error(f"- {line}", bold=False)
                output.new_line()


def _is_in(module: str, package: str) -> bool:
    """Whether it is the package or lies in it."""
    return f"{module}.".startswith(f"{package}.")


class Interfaces(_Permissions):
    """What each package offers to the others: `package = module other_module`. They may import nothing else of it."""

    type_name = "interfaces"

    packages = TableField()

    def validate(self) -> None:
        self.table = cast(Table, self.packages)

    def permissions(self) -> set[str]:
        return {f"{package}.{module}" for package, modules in self.table.items() for module in modules.split()}

    def needed(self, importer: str, imported: str) -> str | None:
        package = self._package_of(imported)
        if package is None or self._package_of(importer) in (None, package):
            return None
        return ".".join(imported.split(".")[: package.count(".") + 2])

    def _package_of(self, module: str) -> str | None:
        return next((package for package in self.table if _is_in(module, package)), None)


class Users(_Permissions):
    """Which parts of a package may import a module: `module = part.of.the.package another.part`."""

    type_name = "users"

    package = fields.StringField()
    modules = TableField()

    def validate(self) -> None:
        self.table = cast(Table, self.modules)

    def permissions(self) -> set[str]:
        return {f"{user} -> {module}" for module, users in self.table.items() for user in users.split()}

    def needed(self, importer: str, imported: str) -> str | None:
        module = next((module for module in self.table if _is_in(imported, module)), None)
        if module is None or not _is_in(importer, cast(str, self.package)):
            return None
        user = next((user for user in self.table[module].split() if _is_in(importer, user)), importer)
        return f"{user} -> {module}"
