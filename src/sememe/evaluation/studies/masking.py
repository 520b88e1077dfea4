"""How many tokens to hide: one small BERT trained at several masking rates, all else being equal.

A corpus in; a folder out with the model of every rate, their figures, a table and a picture. Each
model is measured at its own rate, at one rate that is common to all, and by a linear model on its
frozen vectors (Wettig et al. 2023 ask the same of large models).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sememe.errors import ArtifactError, OptionError
from sememe.evaluation.studies.config import StudyConfig
from sememe.evaluation.studies.probing import Passages, embed_passages, find_passages, probe
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import MANIFEST, check_replaceable, read_json, write_file, write_json
from sememe.storage.provenance import provenance
from sememe.text.settings import TextSettings

KIND = "masking study"
RATES = (0.05, 0.15, 0.4, 0.8)
COMMON = 0.15
DEFAULT_BUDGET = "2m"
PICTURES, TABLE = ("study.png", "study.svg"), "study.md"
HEADINGS = (
    "hidden", "loss", "right", "by frequency", f"loss at {COMMON:.0%}", f"right at {COMMON:.0%}",
    "downstream",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Study:
    """The figures of every rate, and what they are measured against."""

    rows: list[dict[str, Any]]  # by rising rate
    facts: dict[str, Any]

    def table(self) -> list[list[Any]]:
        """The figures as rows under HEADINGS."""
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
    progress: Reporter = SILENT,
) -> Study:
    """Train the preset at each rate for the same number of steps, and measure what it learned.

    The steps are those that fit into the budget at the highest rate, which is trained first.
    `resume` goes on where a study into `out` was stopped, within a rate too.
    """
    from sememe.networks.installed import need_torch

    need_torch()
    from sememe.training.tensorboard import check_tensorboard

    rates, out, config = _checked(rates), Path(out), config or StudyConfig()
    if not (config.budget or config.steps or config.epochs):
        config = replace(config, budget=DEFAULT_BUDGET)
    if isinstance(corpus, Mapping):
        raise OptionError("A study takes one text, not one for each language.")
    if not (config.validation_share and config.evaluate_batches):
        raise OptionError(
            "A study needs held-out text: validation_share, evaluate_batches above 0."
        )
    check_replaceable(out, KIND)
    check_tensorboard(config.tensorboard)
    bench = _Bench(corpus, config, preset, dict(sizes or {}), tokenizer, text, progress)
    kept = _kept(out, bench.plan) if resume else _nothing()
    _write(out, bench, kept)  # so that a study stopped within its first rate can go on
    for number, rate in enumerate(sorted(rates, reverse=True)):
        name = f"{100 * rate:g}"
        if name in kept["rows"]:
            continue
        progress.note(f"Hiding {name} % of the tokens ({number + 1} of {len(rates)} rates).")
        model = bench.trained(rate, kept["steps"], out / f"rate-{name}", resume)
        kept["steps"] = model.history.last()["step"]
        kept["rows"][name] = bench.measured(model, rate)
        _write(out, bench, kept)
    rows = sorted((kept["rows"][f"{100 * rate:g}"] for rate in rates), key=lambda row: row["rate"])
    study = Study(rows=rows, facts={**bench.facts, "steps": kept["steps"]})
    _write(out, bench, kept)
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
    """The text, the tokenizer and the questions that the models of all rates share."""

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
        from sememe.networks.baseline import token_counts
        from sememe.networks.texts import ONLY, open_texts

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
        from sememe.networks.pretraining import BERT

        options = self.config.one_of_several(f"rate-{100 * rate:g}").to_dict()
        if num_steps:
            options |= {"steps": num_steps, "budget": "", "epochs": 0.0}
        return BERT(self.preset, rate=rate, **self.sizes, **options)

    def _asked(self, model: Any) -> dict[str, Any]:
        """What the downstream score is about, and what knows nothing scores in it."""
        passages = self.passages
        if passages is None:
            self.reporter.note(
                "No downstream score: it needs labels (label_field), or two long documents."
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

    def _downstream(self, network: Any, passages: Passages) -> float:
        return probe(embed_passages(network, self.tokenizer, passages), passages)

    def trained(self, rate: float, num_steps: int, out: Path, resume: bool) -> Any:
        """The model of a rate, after so many steps, or those that the options ask for."""
        return self._model(rate, num_steps).fit(
            self.store, tokenizer=self.tokenizer, text=self.text, out=out, resume=resume,
            progress=self.reporter,
        )  # fmt: skip

    def measured(self, model: Any, rate: float) -> dict[str, Any]:
        """The figures of a trained model on held-out text, and downstream."""
        own, common = (self._guessing(model, each) for each in (rate, COMMON))
        found: dict[str, Any] = {"rate": rate, **own}
        found |= {f"common_{name}": value for name, value in common.items()}
        passages = self.passages
        found["downstream"] = self._downstream(model.network, passages) if passages else None
        return found

    def _guessing(self, model: Any, rate: float) -> dict[str, float]:
        """Loss and accuracy where so many tokens of the held-out text are hidden."""
        from sememe.networks.baseline import unigram_figures
        from sememe.training.distributed import Processes
        from sememe.training.evaluation import Validation
        from sememe.training.precision import choose_device

        asked = self._model(rate, 1)
        asked.tokenizer = self.tokenizer
        validation = Validation(
            asked.source(self.store, "validation"), asked.training.evaluate_batches
        )
        device = choose_device(self.config.device)
        model.network.to(device)
        figures = validation(model.objective(), device, Processes())
        model.network.to("cpu").eval()
        baseline = unigram_figures(self._counts, validation.source, validation.num_batches)
        return {
            "loss": figures["masked_loss"], "accuracy": figures["masked_accuracy"], **baseline,
        }  # fmt: skip


# ---- the folder ---------------------------------------------------------------------------------


def _nothing() -> dict[str, Any]:
    return {"steps": 0, "rows": {}}


def _kept(out: Path, plan: dict[str, Any]) -> dict[str, Any]:
    """What a study that was stopped has measured already."""
    from sememe.training.checkpointing import check_plan

    if not (out / MANIFEST).exists():
        return _nothing()
    manifest = read_json(out / MANIFEST)
    try:
        kept = {"steps": int(manifest["steps"]), "rows": dict(manifest["rows"])}
        before = manifest["plan"]
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"{out / MANIFEST} is damaged ({error}): start anew.") from error
    check_plan(out / MANIFEST, before, plan)
    return kept


def _write(out: Path, bench: _Bench, kept: dict[str, Any]) -> None:
    content = {
        "kind": KIND, **kept, "facts": bench.facts, "plan": bench.plan, "provenance": provenance(),
    }  # fmt: skip
    write_json(out / MANIFEST, content)


def _draw(study: Study, out: Path) -> None:
    from sememe.plots.rates import Panel, draw_rates

    def column(name: str) -> list[float]:
        return [row[name] for row in study.rows]

    common = f"{COMMON:.0%} hidden"
    panels = [
        Panel(
            "loss on hidden tokens", {"as trained": column("loss"), common: column("common_loss")}
        ),
        Panel(
            "hidden tokens that are right",
            {"as trained": column("accuracy"), common: column("common_accuracy")},
            {"the most frequent token": study.rows[0]["common_unigram_accuracy"]},
            is_share=True,
        ),
    ]
    if study.facts["question"]:
        levels = {"untrained": study.facts["untrained"], "most frequent": study.facts["majority"]}
        panels.append(
            Panel(
                f"downstream: one of {study.facts['classes']}",
                {"trained": column("downstream")},
                levels,
                is_share=True,
            )
        )
    draw_rates(column("rate"), panels, [out / name for name in PICTURES])
    lines = [HEADINGS, ["---"] * len(HEADINGS), *study.table()]
    with write_file(out / TABLE) as scratch:
        text = "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
        scratch.write_text(text + "\n", encoding="utf-8")
