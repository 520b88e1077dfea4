"""Self-supervised text representations from word2vec to BERT, on your own text."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sememe.errors import SememeError as SememeError
    from sememe.evaluation import evaluate_glue as evaluate_glue
    from sememe.evaluation import evaluate_ner as evaluate_ner
    from sememe.evaluation import evaluate_perplexity as evaluate_perplexity
    from sememe.evaluation import evaluate_senses as evaluate_senses
    from sememe.evaluation import evaluate_squad as evaluate_squad
    from sememe.evaluation import evaluate_texts as evaluate_texts
    from sememe.evaluation import evaluate_words as evaluate_words
    from sememe.examples.docstrings import docstring_rows as docstring_rows
    from sememe.examples.docstrings import docstring_texts as docstring_texts
    from sememe.ladder.running import Ladder as Ladder
    from sememe.networks.awd_model import ULMFiT as ULMFiT
    from sememe.networks.elmo_model import ELMo as ELMo
    from sememe.networks.nnlm_model import NNLM as NNLM
    from sememe.networks.pretraining import BERT as BERT
    from sememe.networks.pretraining import GPT as GPT
    from sememe.static.counts.config import CountsConfig as CountsConfig
    from sememe.static.counts.model import Counts as Counts
    from sememe.static.fasttext.classifier.config import (
        FastTextClassifierConfig as FastTextClassifierConfig,
    )
    from sememe.static.fasttext.classifier.model import FastTextClassifier as FastTextClassifier
    from sememe.static.fasttext.config import FastTextConfig as FastTextConfig
    from sememe.static.fasttext.model import FastText as FastText
    from sememe.static.glove.config import GloVeConfig as GloVeConfig
    from sememe.static.glove.model import GloVe as GloVe
    from sememe.static.ngram.config import NGramConfig as NGramConfig
    from sememe.static.ngram.model import NGram as NGram
    from sememe.static.onehot.config import OneHotConfig as OneHotConfig
    from sememe.static.onehot.model import OneHot as OneHot
    from sememe.static.word2vec.config import Word2VecConfig as Word2VecConfig
    from sememe.static.word2vec.model import Word2Vec as Word2Vec
    from sememe.tasks.answer import Answer as Answer
    from sememe.tasks.choose import Choose as Choose
    from sememe.tasks.classify import Classify as Classify
    from sememe.tasks.config import FinetuneConfig as FinetuneConfig
    from sememe.tasks.pairs import Pairs as Pairs
    from sememe.tasks.regress import Regress as Regress
    from sememe.tasks.tag import Tag as Tag
    from sememe.tasks.translate import Seq2Seq as Seq2Seq
    from sememe.tasks.translate import Transformer as Transformer
    from sememe.text.settings import TextSettings as TextSettings
    from sememe.tokens.store import TokenStore as TokenStore
    from sememe.tokens.subwords import SubwordTokenizer as SubwordTokenizer
    from sememe.training.rate_search import RateCurve as RateCurve
    from sememe.training.rate_search import find_rate as find_rate
    from sememe.vectors import WordVectors as WordVectors
    from sememe.vectors import load as load

__version__ = "0.1.0"

# A name is imported when it is first used, so that `import sememe` takes no time.
_HOMES = {
    "Answer": "sememe.tasks.answer",
    "BERT": "sememe.networks.pretraining",
    "Choose": "sememe.tasks.choose",
    "Classify": "sememe.tasks.classify",
    "Counts": "sememe.static.counts.model",
    "CountsConfig": "sememe.static.counts.config",
    "ELMo": "sememe.networks.elmo_model",
    "FastText": "sememe.static.fasttext.model",
    "FastTextClassifier": "sememe.static.fasttext.classifier.model",
    "FastTextClassifierConfig": "sememe.static.fasttext.classifier.config",
    "FastTextConfig": "sememe.static.fasttext.config",
    "FinetuneConfig": "sememe.tasks.config",
    "GPT": "sememe.networks.pretraining",
    "GloVe": "sememe.static.glove.model",
    "GloVeConfig": "sememe.static.glove.config",
    "Ladder": "sememe.ladder.running",
    "NGram": "sememe.static.ngram.model",
    "NGramConfig": "sememe.static.ngram.config",
    "NNLM": "sememe.networks.nnlm_model",
    "OneHot": "sememe.static.onehot.model",
    "OneHotConfig": "sememe.static.onehot.config",
    "Pairs": "sememe.tasks.pairs",
    "RateCurve": "sememe.training.rate_search",
    "Regress": "sememe.tasks.regress",
    "SememeError": "sememe.errors",
    "Seq2Seq": "sememe.tasks.translate",
    "SubwordTokenizer": "sememe.tokens.subwords",
    "Tag": "sememe.tasks.tag",
    "TextSettings": "sememe.text.settings",
    "TokenStore": "sememe.tokens.store",
    "Transformer": "sememe.tasks.translate",
    "ULMFiT": "sememe.networks.awd_model",
    "Word2Vec": "sememe.static.word2vec.model",
    "Word2VecConfig": "sememe.static.word2vec.config",
    "WordVectors": "sememe.vectors",
    "docstring_rows": "sememe.examples.docstrings",
    "docstring_texts": "sememe.examples.docstrings",
    "evaluate_glue": "sememe.evaluation",
    "evaluate_ner": "sememe.evaluation",
    "evaluate_perplexity": "sememe.evaluation",
    "evaluate_senses": "sememe.evaluation",
    "evaluate_squad": "sememe.evaluation",
    "evaluate_texts": "sememe.evaluation",
    "evaluate_words": "sememe.evaluation",
    "find_rate": "sememe.training.rate_search",
    "load": "sememe.vectors",
}

__all__ = [
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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sememe' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
