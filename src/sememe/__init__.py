"""Self-supervised text representations from word2vec to BERT, on your own text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sememe.lazy import lazily

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
    "Answer": "tasks.answer",
    "BERT": "networks.pretraining",
    "Choose": "tasks.choose",
    "Classify": "tasks.classify",
    "Counts": "static.counts.model",
    "CountsConfig": "static.counts.config",
    "ELMo": "networks.elmo_model",
    "FastText": "static.fasttext.model",
    "FastTextClassifier": "static.fasttext.classifier.model",
    "FastTextClassifierConfig": "static.fasttext.classifier.config",
    "FastTextConfig": "static.fasttext.config",
    "FinetuneConfig": "tasks.config",
    "GPT": "networks.pretraining",
    "GloVe": "static.glove.model",
    "GloVeConfig": "static.glove.config",
    "Ladder": "ladder.running",
    "NGram": "static.ngram.model",
    "NGramConfig": "static.ngram.config",
    "NNLM": "networks.nnlm_model",
    "OneHot": "static.onehot.model",
    "OneHotConfig": "static.onehot.config",
    "Pairs": "tasks.pairs",
    "RateCurve": "training.rate_search",
    "Regress": "tasks.regress",
    "SememeError": "errors",
    "Seq2Seq": "tasks.translate",
    "SubwordTokenizer": "tokens.subwords",
    "Tag": "tasks.tag",
    "TextSettings": "text.settings",
    "TokenStore": "tokens.store",
    "Transformer": "tasks.translate",
    "ULMFiT": "networks.awd_model",
    "Word2Vec": "static.word2vec.model",
    "Word2VecConfig": "static.word2vec.config",
    "WordVectors": "vectors",
    "docstring_rows": "examples.docstrings",
    "docstring_texts": "examples.docstrings",
    "evaluate_glue": "evaluation",
    "evaluate_ner": "evaluation",
    "evaluate_perplexity": "evaluation",
    "evaluate_senses": "evaluation",
    "evaluate_squad": "evaluation",
    "evaluate_texts": "evaluation",
    "evaluate_words": "evaluation",
    "find_rate": "training.rate_search",
    "load": "vectors",
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


__getattr__ = lazily(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
