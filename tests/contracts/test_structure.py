"""The shape of the program: rooms, imports, and doors that know models by their contract alone."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import sememe
from sememe.contract import KINDS, Model

ROOT = Path(sememe.__file__).parent
DOORS = ("evaluation", "search", "ladder", "explore", "serve", "cli")
# What may be used of models and tasks beside their classes: opening, and whole programs.
PROGRAMS = {
    "sememe.models.registry", "sememe.models.bert.masking_study",
    "sememe.models.translation.reversal_study", "sememe.tasks.trials",
}  # fmt: skip
# Heavy or optional libraries, and parts of the standard library that take long to import.
LAZY_LIBRARIES = {
    "filelock", "h5py", "importlib", "jinja2", "matplotlib", "numba", "numpy", "platformdirs",
    "pyarrow", "regex", "rich", "rjieba", "sacrebleu", "safetensors", "scipy", "sklearn",
    "tensorboard", "threadpoolctl", "tokenizers", "torch", "transformers", "usearch", "zstandard",
}  # fmt: skip


# Parts of ours that load numba or tokenizers: a program that never needs them starts faster.
LAZY_PARTS = (
    "kernels",
    "sememe.text.words.select_tokens",  # workers that cut Chinese start without NumPy
    "sememe.text.stream.cut_texts",  # word vectors that are only looked up need no segmenter
    "sememe.tokens.subwords.training.train_engine",
)


@cache
def trees() -> dict[str, ast.Module]:
    """The modules of the package by name."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = ("sememe", *path.relative_to(ROOT).with_suffix("").parts)
        found[".".join(parts).removesuffix(".__init__")] = ast.parse(path.read_text("utf-8"))
    return found


def imports(tree: ast.AST, *, in_functions: bool | None = None) -> Iterator[tuple[str, str, int]]:
    """(module, name, line) of each import that runs; those for types alone are left out."""
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    typed = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in typed or in_functions not in (None, id(node) in inside):
            continue
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node.module or "", alias.name, node.lineno
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, "", node.lineno


def graph() -> dict[str, set[str]]:
    """Which module imports which, wherever the import stands."""
    known, found = trees(), defaultdict(set)
    for module, tree in known.items():
        for source, name, _ in imports(tree):
            target = f"{source}.{name}" if f"{source}.{name}" in known else source
            if target in known and target != module:
                found[module].add(target)
    return found


def reachable(links: dict[str, set[str]], start: str) -> set[str]:
    """All modules that a module imports, directly or not."""
    found, waiting = set(), [start]
    while waiting:
        for target in links.get(waiting.pop(), ()):
            if target not in found:
                found.add(target)
                waiting.append(target)
    return found


def test_no_two_modules_import_each_other():
    links = graph()
    assert [module for module in links if module in reachable(links, module)] == []


def test_imports_inside_functions_are_of_heavy_libraries_or_of_commands():
    found = [
        f"{module}:{line} {source} {name}"
        for module, tree in trees().items()
        for source, name, line in imports(tree, in_functions=True)
        if source.partition(".")[0] not in LAZY_LIBRARIES
        and not module.startswith("sememe.cli")
        and not f"{source}.{name}".endswith(LAZY_PARTS)
        and not source.endswith("kernels")
    ]
    assert found == []


def test_folders_stay_small():
    folders = defaultdict(int)
    for path in ROOT.rglob("*.py"):
        folders[path.parent] += 1
    assert sum(folders.values()) < 350
    assert max(folders.values()) <= 40


def named_in(tree: ast.AST) -> set[str]:
    """The names in an expression, with or without a module before them."""
    nodes = [*ast.walk(tree)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def doors() -> list[str]:
    """The modules that may know models by their contract alone."""
    return [
        module for module in trees() if module.split(".")[1:2] and module.split(".")[1] in DOORS
    ]


@pytest.mark.parametrize("module", doors())
def test_doors_import_only_public_classes_and_options(module: str):
    """Of models and tasks: the registry, a model's class or its options, and no parts of it."""
    allowed = {*PROGRAMS, *(kind.home.partition(":")[0] for kind in KINDS.values())}
    found = [
        f"{line}: {source} {name}"
        for source, name, line in imports(trees()[module])
        if source.startswith(("sememe.models.", "sememe.tasks."))
        and source not in allowed
        and not source.endswith(".config")
    ]
    assert found == []


# Files of fastText's folders, and the coder of a GPT, which frames its texts otherwise.
KNOW_KINDS = {
    "sememe.vectors.opening": ["manifest.get('kind') == 'fasttext'", "vectors.kind == 'fasttext'"],
    "sememe.nn.encoders": ["self.kind == 'gpt'"],
}


@pytest.mark.parametrize(
    "module", [name for name in trees() if not name.startswith(("sememe.models", "sememe.tasks"))]
)
def test_only_models_and_tasks_ask_for_kinds(module: str):
    """No isinstance of a model, no hasattr of one, no comparison with the name of its kind.

    Names of tasks are also names of benchmarks' rows, which may be told apart by them.
    """
    classes = {kind.home.partition(":")[2] for kind in KINDS.values()} | {"Model", "Task"}
    kinds = {name for name, kind in KINDS.items() if "sememe.tasks" not in kind.home} | {"task"}
    found = []
    for node in ast.walk(trees()[module]):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            is_asked = node.func.id in ("hasattr", "getattr") and getattr(
                node.args[1], "value", None
            ) in set(dir(Model)) - set(dir(object))
            is_class = node.func.id in ("isinstance", "issubclass")
            if is_asked or (is_class and named_in(node.args[1]) & classes):
                found.append(ast.unparse(node))
        elif isinstance(node, ast.Compare) and "kind" in ast.unparse(node.left):
            named = {
                part.value
                for side in (node.left, *node.comparators)
                for part in getattr(side, "elts", [side])
                if isinstance(part, ast.Constant)
            }
            if named & kinds:
                found.append(ast.unparse(node))
        elif isinstance(node, ast.Compare) and {"type", *classes} & named_in(node.left):
            found += [ast.unparse(node)] * any(named_in(one) & classes for one in node.comparators)
    assert found == KNOW_KINDS.get(module, [])
