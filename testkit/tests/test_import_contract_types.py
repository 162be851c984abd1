"""The types of import contracts of `testkit.import_contracts`, on a package of a few modules."""

from __future__ import annotations

import grimp
import pytest
from importlinter.domain.contract import InvalidContractOptions

from testkit.import_contracts import Interfaces, LayersOfPackages, Users

MODULES = ("shop", "shop.orders", "shop.orders.pages", "shop.stock", "shop.stock.rules", "shop.stock.tables")
SESSION = {"root_packages": ["shop"]}


def shop() -> grimp.ImportGraph:
    """Pages of orders import the tables of stock."""
    graph = grimp.ImportGraph()
    for module in MODULES:
        graph.add_module(module)
    graph.add_import(
        importer="shop.orders.pages", imported="shop.stock.tables", line_number=1, line_contents="import shop"
    )
    return graph


def problems(contract: Interfaces | LayersOfPackages | Users, capsys: pytest.CaptureFixture[str]) -> str:
    """What is printed of the contract; empty if it is kept."""
    check = contract.check(shop(), verbose=False)
    if check.kept:
        return ""
    contract.render_broken_contract(check)
    printed = " ".join(capsys.readouterr().out.split())
    assert printed
    return printed


@pytest.mark.parametrize(
    ("offered", "problem"),
    [
        ("tables", ""),
        ("", "Nothing permits these imports: - shop.orders.pages -> shop.stock.tables"),
        ("rules tables", "No import needs these permissions; remove them: - shop.stock.rules"),
    ],
)
def test_a_package_is_imported_by_what_it_offers(
    offered: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = ["shop.orders =", f"shop.stock = {offered}"]
    assert problems(Interfaces("Shop", SESSION, {"packages": table}), capsys) == problem


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (["shop.stock = shop.orders"], ""),
        (["shop.stock.tables ="], "Nothing permits these imports: - shop.orders.pages -> shop.stock.tables"),
        (
            ["shop.stock = shop.orders", "shop.orders.lists"],
            "No import needs these permissions; remove them: - shop.orders.lists -> shop.stock",
        ),
    ],
)
def test_a_module_has_its_users(table: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert problems(Users("Shop", SESSION, {"package": "shop", "modules": table}), capsys) == problem


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (["shop = orders > stock", "shop.stock = rules | tables"], ""),
        (["shop.stock = rules", "| tables", "shop = orders > stock"], ""),
        (["shop = stock > orders"], "shop.orders is not allowed to import shop.stock"),
        (["shop = orders | stock"], "shop.orders is not allowed to import shop.stock"),
        (["shop = orders > stock", "shop.stock = tables"], "- shop.stock.rules"),
    ],
)
def test_a_package_has_layers(table: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = problems(LayersOfPackages("Shop", SESSION, {"packages": table}), capsys)
    assert problem in printed and bool(problem) == bool(printed)


@pytest.mark.parametrize("table", [["shop.stock"], ["= rules"], ["shop = orders > stock", "shop = stock > orders"]])
def test_a_line_has_a_name_of_its_own(table: list[str]) -> None:
    with pytest.raises(InvalidContractOptions):
        LayersOfPackages("Shop", SESSION, {"packages": table})


def test_a_name_is_a_modules(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match=r"shop\.store does not exist"):
        problems(Interfaces("Shop", SESSION, {"packages": ["shop.store ="]}), capsys)
    with pytest.raises(ValueError, match=r"shop\.stocks does not exist"):
        problems(Users("Shop", SESSION, {"package": "shop", "modules": ["shop.stocks ="]}), capsys)
