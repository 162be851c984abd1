"""Finds uses of private names of dependencies: `python private_names.py [ROOT]`. Exits with 1 if it finds any.

A dependency's name is private if it begins with an underscore, or if it is in a module that the dependency's
documentation does not list. A release may remove it without notice. The gateway once used such names of aiohttp, and
with all versions but two it answered no request. Names of this project that begin with an underscore may be used
anywhere in the tree. A name belongs to the project if a class, function or module here defines one of that spelling. In
the product, ruff's SLF001 is stricter: an underscore is private to its class or module.
"""

import ast
import functools
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

# File, private name or module, and why there is no other way. If a name of SQLAlchemy disappears,
# chassis/tests/db/test_private_names.py says what to do.
_SQL = "SQLAlchemy has no public way to run a compiled statement without its engine: 300 µs a call"
EXCEPTIONS = {
    ("chassis/chassis/db/statements.py", "_result_columns"): _SQL,
    ("chassis/chassis/db/statements.py", "_cached_result_processor"): _SQL,
    ("chassis/chassis/db/statements.py", "_bind_processors"): _SQL,
    (
        "chassis/chassis/lists/paging.py",
        "sqlalchemy.sql.util",
    ): "ClauseAdapter is the only way to put a subquery's columns in the place of its table's",
    ("chassis/chassis/messaging/transport.py", "_server_info"): "nats-py has no public way to demand TLS of a server",
    ("chassis/tests/db/test_private_names.py", "_result_columns"): "asserts that it exists",
    ("chassis/tests/db/test_private_names.py", "_cached_result_processor"): "asserts that it exists",
    ("chassis/tests/db/test_private_names.py", "_bind_processors"): "asserts that it exists",
    ("chassis/tests/db/test_private_names.py", "sqlalchemy.sql.util"): "asserts that it exists",
    ("cli/tests/test_rpc_commands.py", "_actions"): "argparse has no public way to walk a parser; it is Python's own",
    ("cli/tests/test_rpc_commands.py", "_SubParsersAction"): "the same",
    ("cli/tests/test_rpc_commands.py", "_HelpAction"): "the same",
    ("cli/tests/test_rpc_commands.py", "_StoreTrueAction"): "the same",
    ("tests/e2e/test_month.py", "_actions"): "the same",
    ("tests/e2e/test_month.py", "_SubParsersAction"): "the same",
}
# Packages whose documentation lists only these modules.
DOCUMENTED = {
    "aiohttp": {"aiohttp", "aiohttp.web", "aiohttp.abc", "aiohttp.hdrs", "aiohttp.test_utils"},
    "httptools": {"httptools"},
}
# Modules that their package's documentation does not list, with their submodules.
UNDOCUMENTED = {
    "alembic.util",
    "asyncpg.connect_utils",
    "asyncpg.protocol",
    "nats.aio.transport",
    "nats.protocol",
    "sqlalchemy.sql.crud",
    "sqlalchemy.sql.traversals",
    "sqlalchemy.sql.util",
    "sqlalchemy.util",
}
# Documented names with an underscore: of named tuples, os and sys.
PUBLIC = {"_asdict", "_exit", "_field_defaults", "_fields", "_getframe", "_make", "_replace"}
NOT_WRITTEN_BY_HAND = ("proto/gen/",)
ATTRIBUTE_FUNCTIONS = {"getattr", "setattr", "delattr", "hasattr"}
LOOKED_AT = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Name, ast.Attribute),
    *(ast.alias, ast.Import, ast.ImportFrom, ast.Call),
)
IGNORED_FOLDERS = {".git", ".venv", ".state", "__pycache__", "build"}


def main(root: Path) -> int:
    """Prints the findings, one a line."""
    sentences = problems(root)
    sys.stdout.write("".join(f"{line}\n" for line in sentences))
    return 1 if sentences else 0


def problems(root: Path) -> list[str]:
    """Uses of private names that no exception allows, and exceptions that nothing uses."""
    files = {path: nodes((root / path).read_text(), path) for path in sources(root)}
    packages, names = own_packages(set(files)), {name for file_nodes in files.values() for name in defined(file_nodes)}
    sentences, used = [], set()
    for path, file_nodes in files.items():
        for line, name, sentence in (*imported(file_nodes, packages), *accessed(file_nodes, packages, names)):
            if (path, name) in EXCEPTIONS:
                used.add((path, name))
            else:
                sentences.append(f"{path}:{line}: {sentence}")
    return sentences + [
        f"{path}: does not use {name} any more: take its exception out of .ci/private_names.py"
        for path, name in EXCEPTIONS
        if (path, name) not in used
    ]


def nodes(source: str, path: str) -> list[ast.AST]:
    """The nodes of a file that can have a name of interest."""
    return [node for node in ast.walk(ast.parse(source, path)) if isinstance(node, LOOKED_AT)]


def sources(root: Path) -> list[str]:
    """The hand-written Python files, relative to the root."""
    paths = []
    for folder, folders, names in os.walk(root):
        folders[:] = [
            folder
            for folder in folders
            if folder not in IGNORED_FOLDERS and not folder.endswith(("_cache", ".egg-info"))
        ]
        place = Path(folder).relative_to(root)
        paths += [(place / name).as_posix() for name in names if name.endswith(".py")]
    return sorted(path for path in paths if not path.startswith(NOT_WRITTEN_BY_HAND))


def own_packages(paths: set[str]) -> set[str]:
    """The names that can be imported from the tree: packages, and modules in no package."""
    packages = {"makeready"}  # generated
    for path in map(Path, paths):
        if f"{path.parent.as_posix()}/__init__.py" not in paths:
            packages.add(path.stem)
        elif f"{path.parent.parent.as_posix()}/__init__.py" not in paths:
            packages.add(path.parent.name)
    return packages


def is_private(name: str) -> bool:
    """Whether the name has a leading underscore. Python and enum document `__dunder__` and `_sunder_` names."""
    return name.startswith("_") and not name.endswith("_") and name not in PUBLIC


def defined(file_nodes: list[ast.AST]) -> Iterator[str]:
    """The names that a file defines. file_nodes: as `nodes` returns them, here and below."""
    for node in file_nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and of_self(node.value):
            yield node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname


def of_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def imported(file_nodes: list[ast.AST], packages: set[str]) -> Iterator[tuple[int, str, str]]:
    """(line, private name, sentence) of imports, including those by `importlib.import_module`."""
    for node in file_nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from of_module(node.lineno, alias.name, packages)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from of_module(node.lineno, node.module, packages)
            if node.module.split(".")[0] in packages:
                continue
            for alias in node.names:
                if is_private(alias.name):
                    yield node.lineno, alias.name, f"imports {alias.name}, a private name, from {node.module}"
                elif is_module(whole := f"{node.module}.{alias.name}"):
                    yield from of_module(node.lineno, whole, packages)
        elif isinstance(node, ast.Call) and dotted(node.func).endswith("import_module"):
            for name in texts(node.args[:1]):
                yield from of_module(node.lineno, name, packages)


def of_module(line: int, module: str, packages: set[str]) -> Iterator[tuple[int, str, str]]:
    parts = module.split(".")
    if parts[0] in packages:
        return
    if any(map(is_private, parts)):
        yield line, module, f"imports {module}, a private module"
    elif is_undocumented(module):
        yield line, module, f"imports {module}, a module that is not documented"


def is_undocumented(module: str) -> bool:
    package = module.split(".", maxsplit=1)[0]
    if package in DOCUMENTED:
        return module not in DOCUMENTED[package]
    return any(module == undocumented or module.startswith(f"{undocumented}.") for undocumented in UNDOCUMENTED)


@functools.cache
def is_module(name: str) -> bool:
    """Whether `package.….name` is a file or folder of an installed package; without importing it."""
    package, *submodules = name.split(".")
    spec = importlib.util.find_spec(package)
    places = [Path(location, *submodules) for location in (spec.submodule_search_locations or ())] if spec else []
    return any(place.is_dir() or place.with_name(f"{place.name}.py").is_file() for place in places)


def accessed(file_nodes: list[ast.AST], packages: set[str], names: set[str]) -> Iterator[tuple[int, str, str]]:
    """(line, private name, sentence) of attributes, including those named by a string."""
    modules = {alias.name for node in file_nodes if isinstance(node, ast.Import) for alias in node.names}
    for node in file_nodes:
        if isinstance(node, ast.Attribute):
            if is_private(node.attr) and node.attr not in names:
                yield node.lineno, node.attr, f"uses {node.attr}, a private name that is none of ours"
            elif (whole := dotted(node)) and whole.split(".")[0] in modules and is_module(whole):
                yield from of_module(node.lineno, whole, packages)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ATTRIBUTE_FUNCTIONS:
            for name in texts(node.args[1:2]):
                if is_private(name) and name not in names:
                    yield node.lineno, name, f"uses {name}, a private name that is none of ours"


def texts(nodes: list[ast.expr]) -> list[str]:
    """The values of the nodes that are string literals."""
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def dotted(node: ast.AST) -> str:
    """`a.b.c` if the expression is a dotted name, else an empty text."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).resolve().parents[1]))
