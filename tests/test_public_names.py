"""The names that users import are pinned, come quickly, and carry the version of the package."""

import pkgutil
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import sememe
import sememe.static

ROOT = Path(__file__).parents[1]
HEAVY = ("numba", "torch", "scipy", "matplotlib", "rich", "pyarrow", "rjieba", "tokenizers")


def test_the_public_names_are_these():
    assert sememe.__all__ == [
        "BERT",
        "GPT",
        "NNLM",
        "Answer",
        "Choose",
        "Classify",
        "Counts",
        "CountsConfig",
        "ELMo",
        "FastText",
        "FastTextClassifier",
        "FastTextClassifierConfig",
        "FastTextConfig",
        "FinetuneConfig",
        "GloVe",
        "GloVeConfig",
        "Ladder",
        "NGram",
        "NGramConfig",
        "OneHot",
        "OneHotConfig",
        "Pairs",
        "RateCurve",
        "Regress",
        "SememeError",
        "Seq2Seq",
        "SubwordTokenizer",
        "Tag",
        "TextSettings",
        "TokenStore",
        "Transformer",
        "ULMFiT",
        "Word2Vec",
        "Word2VecConfig",
        "WordVectors",
        "__version__",
        "docstring_rows",
        "docstring_texts",
        "evaluate_glue",
        "evaluate_ner",
        "evaluate_perplexity",
        "evaluate_senses",
        "evaluate_squad",
        "evaluate_texts",
        "evaluate_words",
        "find_rate",
        "load",
    ]
    assert dir(sememe) == sorted(sememe.__all__)


@pytest.mark.parametrize("name", sememe.__all__)
def test_every_name_is_there(name):
    assert getattr(sememe, name) is not None


PACKAGES = [
    package.name
    for package in pkgutil.walk_packages(sememe.static.__path__, "sememe.static.")
    if package.ispkg
]


def test_every_static_model_comes_from_its_package():
    given = set()
    for package in map(import_module, PACKAGES):
        for name in package.__all__:
            assert getattr(package, name) is getattr(sememe, name)
            given.add(name)
    public = {name for name, home in sememe._HOMES.items() if home.startswith("static.")}
    assert given == public and len(PACKAGES) >= 6


def test_a_name_that_does_not_exist():
    with pytest.raises(AttributeError, match="nothing_like_it"):
        sememe.nothing_like_it  # noqa: B018


def test_the_version_is_that_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == sememe.__version__


def test_help_imports_nothing_heavy():
    """It answers in half a second, because only the terminal's own libraries are loaded."""
    code = (
        "import atexit, sys; sys.argv = ['sememe', '--help']\n"
        "atexit.register(lambda: print(*{name.partition('.')[0] for name in sys.modules}))\n"
        "from sememe.cli import main; main()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.splitlines()[-1].split())
    assert {"sememe", "typer"} <= loaded and not ({*HEAVY, "numpy"} - {"rich"}) & loaded


def test_importing_the_packages_imports_nothing_heavy():
    code = (
        f"import sys, sememe, {', '.join(PACKAGES)};"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {*HEAVY, "numpy"} & set(ran.stdout.split())


def test_the_commands_load_nothing_heavy_before_they_run():
    code = (
        "import sys, sememe.cli.app;"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(HEAVY) & set(ran.stdout.split())
