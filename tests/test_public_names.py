"""The names that users import are pinned, come quickly, and carry the version of the package."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import sememe
import sememe.models.static
from sememe.contract import KINDS

ROOT = Path(__file__).parents[1]
HEAVY = ("numba", "torch", "scipy", "matplotlib", "rich", "pyarrow", "rjieba", "tokenizers")


def test_the_public_names_are_these():
    """The class of every kind, which its registration makes public, and these."""
    kinds = {kind.home.partition(":")[2] for kind in KINDS.values()}
    assert set(sememe.__all__) - kinds == {
        "AsyncClient",
        "CleanConfig",
        "CleanReport",
        "Client",
        "CountsConfig",
        "Evaluate",
        "FastTextClassifierConfig",
        "FastTextConfig",
        "FinetuneConfig",
        "GloVeConfig",
        "Ladder",
        "NGramConfig",
        "OneHotConfig",
        "Plan",
        "RateCurve",
        "Search",
        "SearchConfig",
        "SememeError",
        "SubwordTokenizer",
        "TextSettings",
        "TokenStore",
        "Word2VecConfig",
        "__version__",
        "align",
        "clean",
        "docstring_pairs",
        "distill",
        "docstring_rows",
        "docstring_texts",
        "duplicates",
        "evaluate_glue",
        "evaluate_induction",
        "evaluate_ner",
        "evaluate_perplexity",
        "evaluate_prompts",
        "evaluate_retrieval",
        "evaluate_senses",
        "evaluate_squad",
        "evaluate_sts",
        "evaluate_texts",
        "evaluate_words",
        "find_rate",
        "fit_small_data",
        "fit_trials",
        "load",
        "plan",
        "study_masking",
        "study_reversal",
        "topics",
    }
    assert kinds <= set(sememe.__all__) and len(set(sememe.__all__)) == len(sememe.__all__)
    assert dir(sememe) == sorted(sememe.__all__)


@pytest.mark.parametrize("name", sememe.__all__)
def test_every_name_is_there(name):
    assert getattr(sememe, name) is not None


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
        "import sys, sememe, sememe.models.word2vec.config, sememe.models.bert.config;"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {*HEAVY, "numpy"} & set(ran.stdout.split())


def test_the_commands_load_nothing_heavy_before_they_run():
    code = "import sys, sememe.cli;print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(HEAVY) & set(ran.stdout.split())
