"""How many tokens to mask: one small BERT trained at several masking rates, all else being equal.

A corpus in; a folder out with the model of every rate, their scores, a table and a picture. Each
model is measured at its own rate, at one rate common to all, and by a linear probe of its frozen
vectors (Wettig et al. 2023 study the same for large models). The labels of the probe come with the
text: the column or package of a document or, if documents are long, the document of a passage. N
passages, D dimensions, C classes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch

from sememe.errors import OptionError
from sememe.examples.packing.rows import Documents
from sememe.models.bert.config import StudyConfig
from sememe.models.bert.model import BERT
from sememe.models.language.baselines import token_counts, unigram_metrics
from sememe.models.language.features import device_of, frame, stacked
from sememe.models.language.texts import ONLY, open_texts
from sememe.models.study_folder import draw_study, keep_in, kept_in
from sememe.plots.charts import RatePanel
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import check_replaceable
from sememe.text.settings import TextSettings
from sememe.training.device import Validation, choose_device
from sememe.training.distributed import Processes
from sememe.training.run import check_tensorboard

_SHORTEST = 16  # tokens of a passage
_PASSAGE = 64
_MIN_PER_CLASS = 20
_MAX_PER_CLASS = 200
_MAX_DOCUMENTS = 20
_TEST_SHARE = 0.3


class Passages(NamedTuple):
    """Texts as ids with their class ids, some of them for testing."""

    ids_N: list[np.ndarray]
    classes_N: np.ndarray
    is_test_N: np.ndarray
    classes: str  # such as 14 packages
    question: str  # the task, in words

    @classmethod
    def of(cls, rows: list[tuple[np.ndarray, int, bool]], classes: str, question: str) -> Self:
        """Build from rows: the ids of a passage, its class id, and whether it is a test row."""
        ids, numbers, is_test = zip(*rows, strict=True)
        return cls(list(ids), np.array(numbers), np.array(is_test), classes, question)

    @property
    def majority(self) -> float:
        """The accuracy of always predicting the most frequent class."""
        most = np.bincount(self.classes_N[~self.is_test_N]).argmax()
        return float((self.classes_N[self.is_test_N] == most).mean())


def find_passages(store: Any, length: int, seed: int) -> Passages | None:
    """Passages of at most `length` tokens with a class each; None if the text has none."""
    if store.label_ids is not None:
        found = _labelled(store, length, seed)
        if found is not None:
            return found
    return _of_documents(store, min(length, _PASSAGE))


def _labelled(store: Any, length: int, seed: int) -> Passages | None:
    """Held-out documents with their labels, at most equally many of each label."""
    documents = Documents(store, "validation")
    # A label of the built-in corpus is a package and a module; the package is the class.
    is_library = "library" in (store.fingerprint or {})
    names = [label.split()[0] if is_library and label else label for label in store.labels]
    labels = [names[label_id] for label_id in store.label_ids[documents.indices]]
    order = np.random.default_rng(seed).permutation(len(labels))
    members: dict[str, list[int]] = {}
    for place in order.tolist():
        if labels[place] and documents.sizes[place] >= _SHORTEST:
            members.setdefault(labels[place], []).append(place)
    kept = [own[:_MAX_PER_CLASS] for _, own in sorted(members.items())]
    kept = [own for own in kept if len(own) >= _MIN_PER_CLASS]
    if len(kept) < 2:
        return None
    rows = []
    for number, own in enumerate(kept):
        num_test = round(_TEST_SHARE * len(own))
        for index, place in enumerate(own):
            first = documents.firsts[place]
            ids = documents.ids[first : first + min(length, documents.sizes[place])]
            rows.append((ids, number, index < num_test))
    named = f"{len(kept)} {'packages' if is_library else 'labels'}"
    return Passages.of(rows, named, f"which of {named} a held-out document is of")


def _of_documents(store: Any, length: int) -> Passages | None:
    """Passages of the longest documents; the last ones of each are test passages."""
    # An unlabelled text was trained on, but without the document of each passage.
    documents = Documents(store, "train")
    longest = np.argsort(-documents.sizes, kind="stable")[:_MAX_DOCUMENTS]
    longest = longest[documents.sizes[longest] >= _MIN_PER_CLASS * length]
    if len(longest) < 2:
        return None
    rows = []
    for number, place in enumerate(longest.tolist()):
        num = min(_MAX_PER_CLASS, int(documents.sizes[place]) // length)
        for index in range(num):
            first = documents.firsts[place] + index * length
            is_test = index >= round((1 - _TEST_SHARE) * num)
            rows.append((documents.ids[first : first + length], number, is_test))
    named = f"{len(longest)} documents"
    return Passages.of(rows, named, f"which of {named} a passage is from")


def embed_passages(network: Any, tokenizer: Any, passages: Passages) -> np.ndarray:
    """The mean over the last layer of each passage, including special tokens, (N, D)."""

    vectors_ND = np.empty((len(passages.ids_N), network.config.width), np.float32)
    order = np.argsort([len(ids) for ids in passages.ids_N], kind="stable")
    with torch.no_grad():
        for first in range(0, len(order), 64):
            group = order[first : first + 64]
            rows = [frame(network, tokenizer, passages.ids_N[place]) for place in group]
            batch = stacked(rows, device_of(network))
            hidden_BTD = network(*batch).float()
            places_T = torch.arange(hidden_BTD.shape[1], device=hidden_BTD.device)
            is_own_BT = places_T < batch.lengths_B[:, None]
            sums_BD = (hidden_BTD * is_own_BT[:, :, None]).sum(1)
            vectors_ND[group] = (sums_BD / batch.lengths_B[:, None]).cpu().numpy()
    return vectors_ND


def probe(vectors_ND: np.ndarray, passages: Passages) -> float:
    """The test accuracy of a logistic regression trained on the other passages."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    is_test_N, classes_N = passages.is_test_N, passages.classes_N
    head = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2_000))
    # BLAS threads would double the time of its many small products.
    with threadpool_limits(1, user_api="blas"):
        head.fit(vectors_ND[~is_test_N].astype(np.float64), classes_N[~is_test_N])
    return float(head.score(vectors_ND[is_test_N].astype(np.float64), classes_N[is_test_N]))


KIND = "masking study"
RATES = (0.05, 0.15, 0.4, 0.8)
COMMON = 0.15
DEFAULT_BUDGET = "2m"
HEADINGS = (
    "hidden", "loss", "right", "by frequency", f"loss at {COMMON:.0%}", f"right at {COMMON:.0%}",
    "downstream",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Study:
    """The metrics of every rate, and their baselines."""

    headings: ClassVar[tuple[str, ...]] = HEADINGS
    rows: list[dict[str, Any]]  # by rising rate
    facts: dict[str, Any]

    def table(self) -> list[list[Any]]:
        """The metrics as rows under the headings."""
        names = (
            "loss", "accuracy", "unigram_accuracy", "common_loss", "common_accuracy", "downstream",
        )  # fmt: skip
        return [
            [f"{100 * row['rate']:g} %", *(_shown(row[name], name) for name in names)]
            for row in self.rows
        ]


def _shown(value: float | None, name: str) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if name.endswith("loss") else f"{value:.1%}"


def study_masking(
    corpus: Any = None,
    config: StudyConfig | None = None,
    *,
    out: str | Path,
    rates: Sequence[float] = RATES,
    preset: str = "tiny",
    sizes: Mapping[str, Any] | None = None,
    tokenizer: Any = None,
    text: TextSettings | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Reporter = SILENT,
) -> Study:
    """Train the preset at each rate for the same number of steps, and measure the result.

    The steps are those that fit into the budget at the highest rate, which is trained first.
    `resume` continues a study that was stopped in `out`, even within a rate; `overwrite` allows
    replacing an existing study.
    """

    rates, out, config = _checked(rates), Path(out), config or StudyConfig()
    if not (config.budget or config.steps or config.epochs):
        config = replace(config, budget=DEFAULT_BUDGET)
    if isinstance(corpus, Mapping):
        raise OptionError("A study takes one text, not one for each language.")
    if not (config.validation_share and config.evaluate_batches):
        raise OptionError(
            "A study needs held-out text: validation_share, evaluate_batches above 0."
        )
    check_replaceable(out, KIND, overwrite=resume or overwrite)
    check_tensorboard(config.tensorboard)
    bench = _Bench(corpus, config, preset, dict(sizes or {}), tokenizer, text, progress)
    nothing: dict[str, Any] = {"steps": 0, "rows": {}}
    kept = kept_in(out, bench.plan, nothing) if resume else nothing
    bench.keep(out, kept)  # so that a study stopped within its first rate can be resumed
    for number, rate in enumerate(sorted(rates, reverse=True)):
        name = f"{100 * rate:g}"
        if name in kept["rows"]:
            continue
        progress.note(f"Hiding {name} % of the tokens ({number + 1} of {len(rates)} rates).")
        model = bench.trained(rate, kept["steps"], out / f"rate-{name}", resume)
        kept["steps"] = model.history.last()["step"]
        kept["rows"][name] = bench.measured(model, rate)
        bench.keep(out, kept)
    rows = sorted((kept["rows"][f"{100 * rate:g}"] for rate in rates), key=lambda row: row["rate"])
    study = Study(rows=rows, facts={**bench.facts, "steps": kept["steps"]})
    bench.keep(out, kept)
    _draw(study, out)
    return study


def _checked(rates: Sequence[float]) -> list[float]:
    wrong = [rate for rate in rates if not 0.001 <= rate <= 1]
    if not rates or wrong or len(set(rates)) < len(rates):
        raise OptionError(
            f"Rates are different shares of the tokens between 0.1 % and 100 %, not "
            f"{', '.join(f'{100 * rate:g} %' for rate in rates) or 'none'}."
        )
    return [float(rate) for rate in rates]


class _Bench:
    """The text, the tokenizer and the probe that the models of all rates share."""

    def __init__(
        self,
        corpus: Any,
        config: StudyConfig,
        preset: str,
        sizes: dict[str, Any],
        tokenizer: Any,
        text: TextSettings | None,
        reporter: Reporter,
    ) -> None:

        self.preset, self.sizes, self.config, self.reporter = preset, sizes, config, reporter
        first = self._model(COMMON, 0)
        first.text = text or first.text
        texts = open_texts(first, corpus, tokenizer=tokenizer, reporter=reporter)
        self.store, self.tokenizer, self.text = texts.stores[ONLY], first.tokenizer, first.text
        self._counts = token_counts(self.store, self.tokenizer.vocab_size)
        length = min(config.length, first.config.max_length) - 2
        self.passages = find_passages(self.store, length, config.seed)
        self.plan = {
            "options": {"preset": preset, **sizes, **config.lasting()},
            "content": {**texts.content, "tokenizer": self.tokenizer.fingerprint},
        }
        self.facts = {"common_rate": COMMON, "tokens": self.store.num_tokens, **self._asked(first)}

    def _model(self, rate: float, num_steps: int) -> Any:

        options = self.config.one_of_several(f"rate-{100 * rate:g}").to_dict()
        if num_steps:
            options |= {"steps": num_steps, "budget": "", "epochs": 0.0}
        return BERT(self.preset, rate=rate, **self.sizes, **options)

    def _asked(self, model: Any) -> dict[str, Any]:
        """What the downstream score measures, and its majority baseline."""
        passages = self.passages
        if passages is None:
            self.reporter.note(
                "No downstream score: it needs labels (--column label=NAME), or two long documents."
            )
            return {"question": None}
        model.config = replace(model.config, vocab_size=self.tokenizer.vocab_size)
        untrained = model.new_network().eval()
        return {
            "question": passages.question,
            "classes": passages.classes,
            "num_test": int(passages.is_test_N.sum()),
            "majority": passages.majority,
            "untrained": self._downstream(untrained, passages),
        }

    def keep(self, out: Path, kept: dict[str, Any]) -> None:
        """Write the measurements so far."""
        keep_in(out, KIND, self.plan, {**kept, "facts": self.facts})

    def _downstream(self, network: Any, passages: Passages) -> float:
        return probe(embed_passages(network, self.tokenizer, passages), passages)

    def trained(self, rate: float, num_steps: int, out: Path, resume: bool) -> Any:
        """The model of a rate, after this many steps, or those of the options."""
        return self._model(rate, num_steps).fit(
            self.store, tokenizer=self.tokenizer, text=self.text, out=out, resume=resume,
            overwrite=True, progress=self.reporter,
        )  # fmt: skip

    def measured(self, model: Any, rate: float) -> dict[str, Any]:
        """The metrics of a trained model on held-out text, and downstream."""
        own, common = (self._guessing(model, each) for each in (rate, COMMON))
        found: dict[str, Any] = {"rate": rate, **own}
        found |= {f"common_{name}": value for name, value in common.items()}
        passages = self.passages
        found["downstream"] = self._downstream(model.network, passages) if passages else None
        return found

    def _guessing(self, model: Any, rate: float) -> dict[str, float]:
        """Loss and accuracy when this fraction of the held-out tokens is masked."""

        asked = self._model(rate, 1)
        asked.tokenizer = self.tokenizer
        validation = Validation(
            asked.source(self.store, "validation"), asked.training.evaluate_batches
        )
        device = choose_device(self.config.device)
        model.network.to(device)
        metrics = validation(model.objective(), device, Processes())
        model.network.to("cpu").eval()
        baseline = unigram_metrics(self._counts, validation.source, validation.num_batches)
        return {
            "loss": metrics["masked_loss"], "accuracy": metrics["masked_accuracy"], **baseline,
        }  # fmt: skip


def _draw(study: Study, out: Path) -> None:

    def column(name: str) -> list[float]:
        return [row[name] for row in study.rows]

    common = f"{COMMON:.0%} hidden"
    panels = [
        RatePanel(
            "loss on hidden tokens", {"as trained": column("loss"), common: column("common_loss")}
        ),
        RatePanel(
            "hidden tokens that are right",
            {"as trained": column("accuracy"), common: column("common_accuracy")},
            {"the most frequent token": study.rows[0]["common_unigram_accuracy"]},
            is_share=True,
        ),
    ]
    if study.facts["question"]:
        levels = {"untrained": study.facts["untrained"], "most frequent": study.facts["majority"]}
        panels.append(
            RatePanel(
                f"downstream: one of {study.facts['classes']}",
                {"trained": column("downstream")},
                levels,
                is_share=True,
            )
        )
    draw_study(out, HEADINGS, study.table(), column("rate"), panels)
