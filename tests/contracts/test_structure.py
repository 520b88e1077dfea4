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
    "sememe.models.registry", "sememe.models.inference", "sememe.models.bert.mask_draws",
    "sememe.models.bert.masking_study", "sememe.models.translation.reversal_study",
    "sememe.models.word2vec.snapshots", "sememe.models.word2vec.steps", "sememe.tasks.importance",
    "sememe.tasks.small_data", "sememe.tasks.trials",
}  # fmt: skip
# Heavy or optional libraries, and parts of the standard library that take long to import.
LAZY_LIBRARIES = {
    "IPython", "bm25s", "filelock", "fsspec", "ftfy", "h5py", "importlib", "jinja2",
    "matplotlib", "numba", "numpy",
    "onnx", "onnxruntime", "openTSNE", "pandas", "platformdirs", "polars", "py3langid",
    "pyarrow", "ray", "regex", "rich", "rjieba", "sacrebleu", "safetensors",
    "scipy", "sklearn", "tensorboard", "threadpoolctl", "tokenizers", "torch", "transformers",
    "umap", "usearch", "zstandard",
}  # fmt: skip


# Parts of ours that load numba or tokenizers: a program that never needs them starts faster.
LAZY_PARTS = (
    "kernels",
    "sememe.text.words.select_tokens",  # workers that cut Chinese start without NumPy
    "sememe.text.stream.cut_texts",  # word vectors that are only looked up need no segmenter
    "sememe.tokens.subwords.training.train_engine",
    "sememe.storage.tensors.num_weights",  # NumPy, which a list of options does not need
    "sememe.training.run.check_tensorboard",  # these load PyTorch
    "sememe.tasks.small_data.search",
    "sememe.training.duration.StepSpeed",
    "sememe.training.duration.extent_of",
    "sememe.training.duration.measure",
    "sememe.training.device.choose_device",
    "sememe.training.loop.INSTEAD",
    "sememe.training.optimizers.rate_at",
    "sememe.models.static.gpu.device_of",
    "sememe.models.counts.on_device.project",
    "sememe.models.word2vec.tiles.run.TileRun",
    "sememe.models.word2vec.tiles.launching",  # Triton
    "sememe.models.huggingface.folder.convert_pickles",
    "sememe.models.huggingface.folder.load_network",
    "sememe.models.huggingface.onnx.write_graph",
    "sememe.models.huggingface.onnx.compare",
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
    """(module, name, line) of each import that runs; those for types alone are left out.

    A module of ours that a call names as a string, such as imported("sememe.nn.layers", …), counts.
    """
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
                yield "." * node.level + (node.module or ""), alias.name, node.lineno
        elif isinstance(node, ast.Call) and named_in(node.func) & {"imported", "import_module"}:
            module, *more = [getattr(one, "value", "") for one in node.args]
            if isinstance(module, str) and module.startswith("sememe."):
                yield module, more[0] if more else "", node.lineno
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
    assert sum(folders.values()) < 510
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


def test_every_import_is_written_in_full():
    """An import relative to its module would pass the other tests unseen."""
    found = [
        f"{module}:{line}"
        for module, tree in trees().items()
        for source, _, line in imports(tree)
        if source.startswith(".")
    ]
    assert found == []


@pytest.mark.parametrize("module", doors())
def test_doors_import_only_public_classes_and_options(module: str):
    """Of models and tasks: the registry, a model's class or its options, and no parts of it."""
    homes = {tuple(kind.home.split(":")) for kind in KINDS.values()}
    found = [
        f"{line}: {source} {name}"
        for source, name, line in imports(trees()[module])
        if f"{source}.".startswith(("sememe.models.", "sememe.tasks."))
        and (source, name) not in homes
        and (source not in PROGRAMS or name.startswith("_"))
        and not source.endswith(".config")
    ]
    assert found == []


@pytest.mark.parametrize("module", doors())
def test_doors_leave_private_parts_alone(module: str):
    """Attributes that begin with _ belong to the class that has them."""
    found = [
        ast.unparse(node)
        for node in ast.walk(trees()[module])
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and node.attr not in ("_replace", "_asdict", "_fields", "_make")
        and ast.unparse(node.value).partition(".")[0] not in ("self", "cls", "os", "typer")
    ]
    assert found == []


# ---- nothing decides by what a model is -----------------------------------------------------

MODEL_KINDS = {name for name, kind in KINDS.items() if "sememe.tasks" not in kind.home}
CLASSES = {kind.home.partition(":")[2] for kind in KINDS.values()} | {"Model", "Task"}
METHODS = set(dir(Model)) - set(dir(object))


def strings_in(tree: ast.AST) -> set[str]:
    """The strings in an expression."""
    nodes = ast.walk(tree)
    return {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def decisions(tree: ast.Module) -> Iterator[str]:
    """What decides by a model's class, its methods or its kind."""
    held, constants = {"kind"}, set()  # names for the kind of a model, and for a certain one
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
            if isinstance(value, ast.Name | ast.Attribute) and "kind" in named_in(value):
                held.add(name)
            if isinstance(value, ast.Constant | ast.Tuple | ast.Set):
                constants |= {name} - held if strings_in(value) & MODEL_KINDS else set()

    def holds_kind(part: ast.AST) -> bool:
        return bool(named_in(part) & held) or "kind" in strings_in(part)

    def is_name(part: ast.AST) -> bool:
        return bool(strings_in(part) & MODEL_KINDS or named_in(part) & constants)

    for node in ast.walk(tree):
        parts: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
            names, words = (set().union(*map(of, parts)) for of in (named_in, strings_in))
            is_listed = names & {"dir", "vars", "__dict__"} and words & METHODS
            is_class = names & {"type", "__class__", "__name__"} and (names | words) & CLASSES
            if is_listed or is_class:
                yield ast.unparse(node)
        elif isinstance(node, ast.Subscript):
            parts = [node.value, node.slice] if isinstance(node.value, ast.Dict) else []
        elif isinstance(node, ast.Match):
            parts = [node.subject, *(case.pattern for case in node.cases)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_asking = node.func.attr in ("get", "startswith", "endswith", "index", "count")
            parts = [node.func.value, *node.args] if is_asking else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name, asked = node.func.id, node.args[1:2]
            if name in ("hasattr", "getattr") and strings_in(asked[0]) & METHODS:
                yield ast.unparse(node)
            if name in ("isinstance", "issubclass") and named_in(asked[0]) & CLASSES:
                yield ast.unparse(node)
        for part in parts:
            if is_name(part) and any(holds_kind(one) for one in parts if one is not part):
                yield ast.unparse(node).partition("\n")[0]
                break


@pytest.mark.parametrize(
    "module", [name for name in trees() if not name.startswith(("sememe.models", "sememe.tasks"))]
)
def test_only_models_and_tasks_ask_for_kinds(module: str):
    """No isinstance or hasattr of a model, no choice by the name of its class or its kind.

    Names of tasks are also names of benchmarks' rows, which may be told apart by them.
    """
    assert list(decisions(trees()[module])) == []


CHEATS = """
isinstance(model, WordVectors)
isinstance(model, (Word2Vec, sememe.GloVe))
type(model) is BERT
type(model).__name__ == "BERT"
model.__class__.__name__ in ("BERT", "GPT")
hasattr(model, "fill")
getattr(model, "fill", None)
"fill" in dir(model)
model.kind == "bert"
"bert" == model.kind
model.kind in {"bert", "gpt"}
model.kind in frozenset(("bert", "gpt"))
model.kind.startswith("bert")
{"bert": 1, "gpt": 2}[model.kind]
{"bert": 1}.get(model.kind)
manifest.get("kind") == "fasttext"
(name := model.kind) == "bert"
own = model.kind; own == "gpt"
OURS = ("bert", "gpt"); model.kind in OURS
match model.kind:;  case "bert":;   pass
"""


@pytest.mark.parametrize("cheat", CHEATS.strip().splitlines())
def test_a_choice_by_class_or_kind_is_found(cheat: str):
    assert list(decisions(ast.parse(cheat.replace("; ", "\n"))))
