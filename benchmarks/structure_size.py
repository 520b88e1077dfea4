"""How large a source tree is: statements, docstrings, files, imports inside functions, cycles.

Everything is read with `ast`; nothing of the tree is imported.

statements   Every `ast.stmt` node, docstrings, imports and definitions included.
docstrings   The share with a docstring. Public: the name of the function (nested ones and methods
             too) or of the class does not begin with an underscore.
imports      Statements `import` and `from … import` below a `def`, those of the tree itself apart.
cycles       Strongly connected groups of two or more modules, imports inside functions counted.
             `from a import b` leads to `a.b` where that is a module, else to `a`; that importing
             `a.b` also runs `a/__init__.py` is not an edge, nor is a name written in a string.
             Once without what stands below `if TYPE_CHECKING:`, once with it.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SHORT = 60  # lines; a file with fewer is called short

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Imports = ast.Import | ast.ImportFrom


@dataclass
class Module:
    """A source file, parsed: its dotted name, its lines and its import statements."""

    name: str
    path: Path
    tree: ast.Module
    num_lines: int
    imports: list[tuple[Imports, bool, bool]] = field(default_factory=list)
    """Each with: does it stand in a function, below `if TYPE_CHECKING:`."""

    @property
    def package(self) -> list[str]:
        """The parts of the package that relative imports of this file start from."""
        parts = self.name.split(".")
        return parts if self.path.name == "__init__.py" else parts[:-1]


def read_tree(source: Path) -> dict[str, Module]:
    """The modules below a folder of sources, by dotted name."""
    modules = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        module = Module(name, path, ast.parse(text), len(text.splitlines()))
        module.imports = list(_find_imports(module.tree, False, False))
        modules[name] = module
    return modules


def _find_imports(
    node: ast.AST, in_function: bool, for_types: bool
) -> Iterator[tuple[Imports, bool, bool]]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node, in_function, for_types
        return
    is_guard = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
    guarded = node.body if isinstance(node, ast.If) and is_guard else []
    inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for child in ast.iter_child_nodes(node):
        yield from _find_imports(child, inside, for_types or child in guarded)


def _targets(module: Module, statement: Imports, known: set[str]) -> set[str]:
    """The dotted names that a statement imports: of our modules exactly, of others the package."""
    if isinstance(statement, ast.Import):
        return {alias.name for alias in statement.names}
    start = module.package[: len(module.package) - statement.level + 1] if statement.level else []
    base = ".".join([*start, *filter(None, [statement.module])])
    names = {f"{base}.{alias.name}" for alias in statement.names}
    return {name if name in known else base for name in names}


def find_cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that reach each other (Tarjan), largest first."""
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = lowest[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], index[other])
        if lowest[name] == index[name]:
            start = stack.index(name)
            groups.append(sorted(stack[start:]))
            del stack[start:]

    for name in graph:
        if name not in index:
            visit(name)
    return sorted((group for group in groups if len(group) > 1), key=len, reverse=True)


def cycles_of(modules: dict[str, Module], with_types: bool) -> list[list[str]]:
    """The import cycles of a tree, imports inside functions included."""
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for module in modules.values():
        for statement, _, for_types in module.imports:
            if with_types or not for_types:
                found = _targets(module, statement, set(modules)) & set(modules)
                graph[module.name] |= found - {module.name}
    return find_cycles(graph)


def _docstrings(modules: dict[str, Module]) -> dict[str, list[int]]:
    """Those with a docstring and all, by what they are."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for module in modules.values():
        for node in ast.walk(module.tree):
            if isinstance(node, Documented):
                if isinstance(node, ast.Module):
                    kind = "modules"
                else:
                    door = "private" if node.name.startswith("_") else "public"
                    kind = f"{door} {'classes' if isinstance(node, ast.ClassDef) else 'functions'}"
                counts[kind][0] += ast.get_docstring(node) is not None
                counts[kind][1] += 1
    return dict(counts)


def measure_size(source: Path) -> dict[str, Any]:
    """Every figure of a tree, with the names behind them below "names"."""
    modules = read_tree(source)
    packages = {name.split(".")[0] for name in modules}
    docstrings = _docstrings(modules)
    statements = sum(
        isinstance(node, ast.stmt) for module in modules.values() for node in ast.walk(module.tree)
    )
    folders = Counter(
        module.path.parent.relative_to(source).as_posix() for module in modules.values()
    )
    inside: Counter[str] = Counter()
    for module in modules.values():
        for statement, in_function, _ in module.imports:
            if in_function:
                found = _targets(module, statement, set(modules))
                inside.update({name.split(".")[0] for name in found})
    num_own = sum(inside.pop(package, 0) for package in packages)
    running, with_types = cycles_of(modules, False), cycles_of(modules, True)
    public = [docstrings.get(kind, [0, 0]) for kind in ("public functions", "public classes")]
    public.append(docstrings["modules"])
    return {
        "figures": {
            "statements": statements,
            "statements without docstrings": statements - sum(d for d, _ in docstrings.values()),
            **{f"docstring %, {kind}": _percent(*both) for kind, both in docstrings.items()},
            "docstring %, all that is public": _percent(*map(sum, zip(*public, strict=True))),
            "files": len(modules),
            f"files under {SHORT} lines": sum(m.num_lines < SHORT for m in modules.values()),
            "folders": len(folders),
            "files in the largest folder": max(folders.values()),
            "folders with more than 40 files": sum(num > 40 for num in folders.values()),
            "imports in functions, of sememe": num_own,
            "imports in functions, of others": sum(inside.values()),
            "import cycles": len(running),
            "modules in import cycles": sum(map(len, running)),
            "import cycles, those for types too": len(with_types),
        },
        "names": {
            "files by folder": dict(folders.most_common()),
            "others imported in functions": dict(inside.most_common()),
            "import cycles": running,
        },
    }


def _percent(some: int, whole: int) -> float:
    return round(100 * some / whole, 2) if whole else 100.0
