"""Self-supervised text representations from word2vec to BERT, on your own text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sememe.contract import KINDS
from sememe.machine import lazily, limit_spinning

if TYPE_CHECKING:
    from sememe.errors import SememeError as SememeError
    from sememe.evaluation import (
        evaluate_glue as evaluate_glue,
        evaluate_induction as evaluate_induction,
        evaluate_ner as evaluate_ner,
        evaluate_perplexity as evaluate_perplexity,
        evaluate_prompts as evaluate_prompts,
        evaluate_retrieval as evaluate_retrieval,
        evaluate_senses as evaluate_senses,
        evaluate_squad as evaluate_squad,
        evaluate_sts as evaluate_sts,
        evaluate_texts as evaluate_texts,
        evaluate_words as evaluate_words,
    )
    from sememe.examples.docstring_tasks import (
        docstring_pairs as docstring_pairs,
        docstring_rows as docstring_rows,
        docstring_texts as docstring_texts,
    )
    from sememe.ladder.running import Ladder as Ladder
    from sememe.models.bert.masking_study import study_masking as study_masking
    from sememe.models.bert.model import BERT as BERT
    from sememe.models.counts.config import CountsConfig as CountsConfig
    from sememe.models.counts.model import Counts as Counts
    from sememe.models.elmo.model import ELMo as ELMo
    from sememe.models.fasttext.classifier.config import (
        FastTextClassifierConfig as FastTextClassifierConfig,
    )
    from sememe.models.fasttext.classifier.model import FastTextClassifier as FastTextClassifier
    from sememe.models.fasttext.config import FastTextConfig as FastTextConfig
    from sememe.models.fasttext.model import FastText as FastText
    from sememe.models.glove.config import GloVeConfig as GloVeConfig
    from sememe.models.glove.model import GloVe as GloVe
    from sememe.models.gpt.model import GPT as GPT
    from sememe.models.ngram.config import NGramConfig as NGramConfig
    from sememe.models.ngram.model import NGram as NGram
    from sememe.models.nnlm.model import NNLM as NNLM
    from sememe.models.onehot.config import OneHotConfig as OneHotConfig
    from sememe.models.onehot.model import OneHot as OneHot
    from sememe.models.registry import load as load
    from sememe.models.sentence.distillation import distill as distill
    from sememe.models.sentence.model import SentenceModel as SentenceModel
    from sememe.models.sif.model import SIF as SIF
    from sememe.models.static.loop import Evaluate as Evaluate
    from sememe.models.translation.model import Seq2Seq as Seq2Seq, Transformer as Transformer
    from sememe.models.translation.reversal_study import study_reversal as study_reversal
    from sememe.models.ulmfit.model import ULMFiT as ULMFiT
    from sememe.models.word2vec.config import Word2VecConfig as Word2VecConfig
    from sememe.models.word2vec.model import Word2Vec as Word2Vec
    from sememe.planning.plan import Plan as Plan, plan as plan
    from sememe.search.config import SearchConfig as SearchConfig
    from sememe.search.duplicates import duplicates as duplicates
    from sememe.search.index import Search as Search
    from sememe.search.topics import topics as topics
    from sememe.serve.client import AsyncClient as AsyncClient, Client as Client
    from sememe.tasks.answer import Answer as Answer
    from sememe.tasks.classify import Classify as Classify, Pairs as Pairs
    from sememe.tasks.config import FinetuneConfig as FinetuneConfig
    from sememe.tasks.small_data import fit_small_data as fit_small_data
    from sememe.tasks.tag import Tag as Tag
    from sememe.tasks.texts import Choose as Choose, Regress as Regress
    from sememe.tasks.trials import fit_trials as fit_trials
    from sememe.text.cleaning.config import CleanConfig as CleanConfig
    from sememe.text.cleaning.report import CleanReport as CleanReport
    from sememe.text.cleaning.running import clean as clean
    from sememe.text.settings import TextSettings as TextSettings
    from sememe.tokens.store import TokenStore as TokenStore
    from sememe.tokens.subwords.tokenizer import SubwordTokenizer as SubwordTokenizer
    from sememe.training.rate_search import RateCurve as RateCurve, find_rate as find_rate
    from sememe.vectors import WordVectors as WordVectors
    from sememe.vectors.alignment import align as align

__version__ = "0.1.0"

# A name is imported when it is first used, so that `import sememe` is fast: the classes of all
# kinds, and these.
_HOMES = {
    "AsyncClient": "serve.client",
    "CleanConfig": "text.cleaning.config",
    "CleanReport": "text.cleaning.report",
    "Client": "serve.client",
    "CountsConfig": "models.counts.config",
    "Evaluate": "models.static.loop",
    "FastTextClassifierConfig": "models.fasttext.classifier.config",
    "FastTextConfig": "models.fasttext.config",
    "FinetuneConfig": "tasks.config",
    "GloVeConfig": "models.glove.config",
    "Ladder": "ladder.running",
    "NGramConfig": "models.ngram.config",
    "OneHotConfig": "models.onehot.config",
    "Plan": "planning.plan",
    "RateCurve": "training.rate_search",
    "Search": "search.index",
    "SearchConfig": "search.config",
    "SememeError": "errors",
    "SubwordTokenizer": "tokens.subwords.tokenizer",
    "TextSettings": "text.settings",
    "TokenStore": "tokens.store",
    "Word2VecConfig": "models.word2vec.config",
    "align": "vectors.alignment",
    "clean": "text.cleaning.running",
    "docstring_pairs": "examples.docstring_tasks",
    "distill": "models.sentence.distillation",
    "docstring_rows": "examples.docstring_tasks",
    "docstring_texts": "examples.docstring_tasks",
    "duplicates": "search.duplicates",
    "evaluate_glue": "evaluation",
    "evaluate_induction": "evaluation",
    "evaluate_ner": "evaluation",
    "evaluate_perplexity": "evaluation",
    "evaluate_prompts": "evaluation",
    "evaluate_retrieval": "evaluation",
    "evaluate_senses": "evaluation",
    "evaluate_squad": "evaluation",
    "evaluate_sts": "evaluation",
    "evaluate_texts": "evaluation",
    "evaluate_words": "evaluation",
    "find_rate": "training.rate_search",
    "fit_small_data": "tasks.small_data",
    "fit_trials": "tasks.trials",
    "load": "models.registry",
    "plan": "planning.plan",
    "study_masking": "models.bert.masking_study",
    "study_reversal": "models.translation.reversal_study",
    "topics": "search.topics",
    **{
        name: module.removeprefix("sememe.")
        for module, name in (kind.home.split(":") for kind in KINDS.values())
    },
}

limit_spinning()  # before anything imports PyTorch

__all__ = ["__version__", *_HOMES]

__getattr__ = lazily(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
