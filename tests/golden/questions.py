"""What every fixture is asked, by command and by Python call, and its answers as plain JSON.

A question is a command with {} in place of the model, or a function of the model's path. Only
names of `sememe` itself and the command line are used, which outlive a change of modules.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import program

import sememe

_CHANGING = ("path", "seconds")  # parts of answers that no two runs share
Question = str | Callable[[str], Any]

WORDS = ("king", "cat", "river")
_EMBED = ("embed {} texts/plain.txt", "embed {} texts/plain.txt --pool words")
_PERPLEXITY = "evaluate perplexity {} texts/held-out.txt --json --quiet"
_SUGGEST = ('suggest {} "The old " --json', 'suggest {} "the qu" --json')
_NEXT = 'next {} "The king sees a cat." "A cat likes the garden." --json'


def vectors_of(words: tuple[str, ...], path: str) -> Any:
    """Words of a model's word vectors, with how many words it has."""
    vectors = sememe.load(path).words
    return {"words": len(vectors), "vectors": vectors[list(words)]}


def _pieces(path: str) -> Any:
    tokenizer = sememe.SubwordTokenizer.load(path)
    ids = tokenizer.encode("The old giraffe likes 苹果.").ids
    return {"ids": np.asarray(ids), "text": tokenizer.decode(ids)}


def _documents(path: str) -> Any:
    model = sememe.Doc2Vec.load(path)
    near = model.nearest_documents("the old king feeds a horse", num=3)
    return {"documents": len(model.documents), "first": model.documents[0], "nearest": near}


def _continued(name: str, path: str) -> Any:
    return [one._asdict() for one in getattr(sememe, name).load(path).next_words("The old ")]


def _score(path: str) -> float:
    return sememe.NGram.load(path).score("the old king sees a cat")


def _perplexity(path: str) -> Any:
    found = sememe.evaluate_perplexity(path, "texts/held-out.txt")
    return {"perplexity": found.perplexity, "words": found.num_words, "log10": found.log10}


def _predicted(name: str, path: str) -> Any:
    task = getattr(sememe, name).load(path)
    return [one._asdict() for one in task.predict(["a lovely book about the forest"])]


def _labelled(path: str) -> Any:
    return sememe.FastTextClassifier.load(path).predict("a lovely book about the forest", k=2)


def _translated(name: str, path: str) -> Any:
    return getattr(sememe, name).load(path).translate(["the old cat sees the bird"], beam=2)


def _static(
    words: tuple[str, ...] = WORDS, embed: tuple[str, ...] = _EMBED
) -> tuple[Question, ...]:
    a, b, c = words
    return (
        partial(vectors_of, words), f"neighbors {{}} {a} {b} --num 4 --json",
        f"similarity {{}} {a} {c} --json", f"analogy {{}} {a} {b} {c} --json",
        f"odd {{}} {a} {b} {c} --json", *embed,
    )  # fmt: skip


def _task(name: str, rows: str) -> tuple[Question, ...]:
    predicted = (partial(_predicted, "Classify"),) if name == "classify" else ()
    rows = f"texts/{rows}"
    return (f"predict {{}} {rows} --json", f"evaluate labels {{}} {rows} --json", *predicted)


_CHINESE_WORDS = ("国王", "小猫", "花园")
_CHINESE_EMBED = (
    "embed {} texts/chinese.txt",
    "embed {} texts/chinese.txt --pool words --language zh",
)
_CLASSIFY = _task("classify", "opinions.tsv")
_CLASSIFIER: tuple[Question, ...] = (
    _labelled, "predict {} texts/plain.txt -k 2 --json",
    "evaluate labels {} texts/labelled.txt --json",
)  # fmt: skip
_BERT: tuple[Question, ...] = (
    'fill {} "The old [MASK] sees a [MASK]." --json', *_EMBED,
    "embed {} texts/plain.txt --layers first", "embed {} texts/plain.txt --layers sum-all",
    "embed {} texts/plain.txt --pool cls",
    'plot attention {} "The old king sees a cat." "A cat sleeps." --json',
)  # fmt: skip
_GPT: tuple[Question, ...] = (
    'generate {} "The old" --greedy --max-tokens 8 --json', *_SUGGEST, _PERPLEXITY, *_EMBED,
    'plot attention {} "The old king sees a cat." --json',
)  # fmt: skip
_TRANSLATOR: tuple[Question, ...] = (
    "translate {} texts/pairs.en --reference texts/pairs.de --json --quiet",
    'translate {} "the old dog likes the child" --beam 4 --n-best 2 --json --quiet', *_EMBED,
    'plot attention {} "the old dog" "das alte Hund" --json',
)  # fmt: skip
_SENTENCES_OF_LSTM = (*_EMBED, "embed {} texts/plain.txt --layers 1")

QUESTIONS: dict[str, tuple[Question, ...]] = {
    "onehot": _static(),
    "counts": _static(),
    "counts-chinese": _static(_CHINESE_WORDS, _CHINESE_EMBED),
    **{
        f"word2vec-{architecture}-{loss}": _static()
        for architecture in ("skipgram", "cbow")
        for loss in ("negative", "hierarchical", "softmax")
    },
    "word2vec-chinese": _static(_CHINESE_WORDS, _CHINESE_EMBED),
    "word2vec-phrases": _static(("king", "new_york", "river")),
    "sif": _static(),
    "usif-chinese": _static(_CHINESE_WORDS, _CHINESE_EMBED),
    "glove": _static(),
    "fasttext": (*_static(), partial(vectors_of, ("giraffe", "kings"))),
    "fasttext-cbow-hierarchical": (*_static(), partial(vectors_of, ("giraffe", "kings"))),
    "floret": (*_static(), partial(vectors_of, ("giraffe", "kings"))),
    "doc2vec": (*_static(), _documents),
    "doc2vec-dm": (*_static(), _documents),
    "doc2vec-concat": _static(_CHINESE_WORDS, _CHINESE_EMBED),
    "vectors.txt": _static(),
    "vectors.bin": _static(),
    "vectors.bin.gz": _static(),
    "vectors.glove": _static(),
    "vectors-folder": _static(),
    "fasttext.vec": _static(),
    "fasttext.bin": (*_static(), partial(vectors_of, ("giraffe", "kings"))),
    "table.floret": (partial(vectors_of, ("giraffe", "king")), *_EMBED),
    "classifier": _CLASSIFIER,
    "classifier-quantized": _CLASSIFIER,
    "classifier.bin": _CLASSIFIER,
    "classifier.ftz": _CLASSIFIER,
    "ngram": (_score, partial(_continued, "NGram"), *_SUGGEST, _PERPLEXITY, _perplexity),
    "ngram-chinese": ('suggest {} "国王" --json',),
    "ngram.arpa": (_score, partial(_continued, "NGram"), *_SUGGEST, _PERPLEXITY),
    "ngram.arpa.gz": (_score, *_SUGGEST),
    "nnlm": (*_static(), partial(_continued, "NNLM"), *_SUGGEST, _PERPLEXITY, _perplexity),
    "nnlm-ranking": _static(),
    "elmo": (*_SENTENCES_OF_LSTM, partial(_continued, "ELMo"), *_SUGGEST, _PERPLEXITY),
    "elmo-words": (*_SENTENCES_OF_LSTM, *_SUGGEST, _PERPLEXITY),
    "elmo-released": (*_SENTENCES_OF_LSTM, "embed {} texts/chinese.txt --pool words --language zh"),
    "elmo-released/elmo_small_weights.hdf5": _EMBED,
    "ulmfit": (*_SENTENCES_OF_LSTM, partial(_continued, "ULMFiT"), *_SUGGEST, _PERPLEXITY),
    "ulmfit-again": (*_EMBED, *_SUGGEST, _PERPLEXITY),
    "ulmfit-asgd": (*_EMBED, *_SUGGEST, _PERPLEXITY),
    "tokenizer-wordpiece": (_pieces,),
    "tokenizer-bpe": (_pieces,),
    "gpt": (*_GPT, partial(_continued, "GPT"), _perplexity),
    "bert": (*_BERT, _NEXT),
    "bert-masks-only": _BERT,
    "bert-chinese": (*_CHINESE_EMBED, 'fill {} "国[MASK]喜欢苹果。" --json', _NEXT),
    "bert-mixed": (*_BERT, *_CHINESE_EMBED, _NEXT),
    "seq2seq": (*_TRANSLATOR, partial(_translated, "Seq2Seq")),
    "seq2seq-gru": _TRANSLATOR,
    "transformer": (*_TRANSLATOR, partial(_translated, "Transformer")),
    "classify": (*_CLASSIFY, *_EMBED),
    "classify-mixed-layers": _CLASSIFY,
    "classify-ensemble": _CLASSIFY,
    "classify-words": _CLASSIFY,
    "classify-subwords": _CLASSIFY,
    "classify-elmo": _CLASSIFY,
    "classify-ulmfit": _CLASSIFY,
    "classify-gpt": _CLASSIFY,
    "pairs": _task("pairs", "pairs.tsv"),
    "pairs-gpt": _task("pairs", "pairs.tsv"),
    "regress": _task("regress", "scores.tsv"),
    "choose": _task("choose", "choices.tsv"),
    "tag": (*_task("tag", "tags.txt"), "predict {} texts/plain.txt --json"),
    "tag-crf": _task("tag", "tags.txt"),
    "tag-words": _task("tag", "tags.txt"),
    "tag-elmo": _task("tag", "tags.txt"),
    "answer": _task("answer", "questions.jsonl"),
    "answer-words": _task("answer", "questions.jsonl"),
    "huggingface-bert": (*_BERT, _NEXT),
    "huggingface-bert-body": (*_EMBED, "embed {} texts/plain.txt --pool cls"),
    "huggingface-bert-sharded": _BERT,
    "huggingface-gpt2": _GPT,
    "sentence": _EMBED,
    "sentence-neighbors": _EMBED,
    "sentence-tsdae": _EMBED[:1],
    "sentence-words": _EMBED[:1],
    "sentence-static": _EMBED[:1],
    "huggingface-gpt1": _GPT,
    "huggingface-classify": ("predict {} texts/plain.txt --json",),
    "huggingface-regress": ("predict {} texts/plain.txt --json",),
    "huggingface-choose": ("predict {} texts/choices.tsv --json",),
    "huggingface-tag": ("predict {} texts/plain.txt --json",),
    "huggingface-answer": ("predict {} texts/questions.jsonl --json",),
}


def name_of(question: Question) -> str:
    """What expected.json calls a question."""
    if isinstance(question, str):
        return question.format("MODEL")
    if isinstance(question, partial):
        arguments = [" ".join(one) if isinstance(one, tuple) else one for one in question.args]
        return f"{question.func.__name__.strip('_')}({', '.join(arguments)})"
    return question.__name__.strip("_")


def ask(question: Question, path: str) -> Any:
    """The answer of one model, as JSON keeps it."""
    if not isinstance(question, str):
        return plain(question(path))
    words = shlex.split(question.format(path))
    if words[0] == "embed":
        program.run(*words, "--out", "scratch.npy", "--overwrite", "--quiet")
        return plain(np.load("scratch.npy")[:12])  # a dozen rows tell as much as all
    said = program.run(*words)
    try:
        return plain(json.loads(said))
    except json.JSONDecodeError:
        return plain([json.loads(line) for line in said.splitlines()])


def plain(value: Any) -> Any:
    """The same in lists, dictionaries and numbers of six digits behind the point."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {str(key): plain(own) for key, own in value.items() if key not in _CHANGING}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(own) for own in value]
    if isinstance(value, (float, np.floating)):
        return round(float(value), 6)
    return int(value) if isinstance(value, np.integer) else value
