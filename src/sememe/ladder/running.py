"""Ladder: a corpus in; every rung trained, evaluated and recorded, and the results out.

The folder has text/ (the split corpus), models/ (one folder per rung), results.json, which is
updated after every finished part, and the report. A stopped run can be resumed: finished rungs and
cells are kept, and an unfinished rung continues from its last checkpoint.
"""

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sememe.cluster.tasks import RayTasks
from sememe.errors import MissingExtraError, OptionError
from sememe.executor import cluster
from sememe.ladder.cluster_pool import machine_of, run_on_cluster
from sememe.ladder.config import LadderConfig
from sememe.ladder.plan import (
    LadderPlan,
    Load,
    cpu_workers,
    estimated_s,
    make_plan,
    this_machine,
    versions,
)
from sememe.ladder.reading import RungModel
from sememe.ladder.results import FILE, Cell, Machine, Results, Rung
from sememe.ladder.rung_steps import Activity, Brief, News, evaluating, training, with_baselines
from sememe.ladder.rungs import SPECS, Chosen, choose, own_rung
from sememe.ladder.tasks import BUILT_IN, LadderQuestions, stamped
from sememe.ladder.text import LadderText, open_text, words_in
from sememe.ladder.training import warmed_up
from sememe.ladder.view import View
from sememe.ladder.worker_pool import ENDED, run_in_workers
from sememe.options import changed
from sememe.progress import Reporter, format_count, format_duration
from sememe.storage.folder import MANIFEST, check_replaceable, read_json, write_json
from sememe.text import library, stream
from sememe.text.settings import TextSettings
from sememe.tokens.caching import note_uncut_chinese

KIND = "ladder"
# Options that may change when a run is resumed.
_PASSING = ("workers", "device")


class Ladder:
    """Every model trained on the same text with the same budget, evaluated on the same tasks.

    results = sememe.Ladder(budget="30s").run("texts/", out="runs/ladder")
    """

    def __init__(
        self,
        config: LadderConfig | None = None,
        *,
        words: Sequence[str | Path] | str | Path | None = None,
        tasks: Mapping[str, tuple[str, str]] | None = None,
        senses: Sequence[str | Path] | str | Path | None = None,
        **options: Any,
    ) -> None:
        """Take the options of LadderConfig by name, and your own evaluation files.

        `words` are files or folders of word pairs, analogies and the like; `tasks` labelled rows by
        kind, such as {"classify": ("train.tsv", "dev.tsv")}; `senses` files of ambiguous words.
        """
        if not isinstance(options.get("rungs", ""), str):
            options["rungs"] = ",".join(map(str, options["rungs"]))
        self.config: LadderConfig = changed(config or LadderConfig(), "Ladder", options)
        self.words, self.senses = _several(words), _several(senses)
        self.tasks = dict(tasks) if tasks else None
        self.chosen: Chosen = choose(self.config.rungs)
        if self.config.finetune and find_spec("torch") is None:
            raise MissingExtraError("finetune needs PyTorch: pip install 'sememe[neural]'.")

    def run(
        self,
        corpus: Any = None,
        *,
        out: str | Path = "runs/ladder",
        text: TextSettings | None = None,
        resume: bool = False,
        overwrite: bool = False,
        progress: Reporter | bool | None = None,
        command: str = "",
        **text_options: Any,
    ) -> Results:
        """Train and evaluate every rung on `corpus` (None: the built-in one), saving to `out`.

        text or its fields by name (language="zh") say how text is read. `resume` continues a run
        that was stopped in `out`; `overwrite` removes the ladder that is there and starts again.
        Without either, an existing ladder is left untouched and an error is raised.
        """
        if resume and overwrite:
            raise OptionError("Give either `resume` or `overwrite`, not both.")
        settings = changed(text or TextSettings(), "run", text_options)
        run = _LadderRun(self, Path(out), settings, View.of(progress))
        with run.view:
            return run.run(corpus, resume, overwrite, command)


def _several(given: Any) -> list[str | Path] | None:
    if given is None:
        return None
    return [given] if isinstance(given, str | Path) else list(given)


class _LadderRun:
    """One run of a ladder: its state, and its output folder."""

    def __init__(self, ladder: Ladder, out: Path, settings: TextSettings, view: View) -> None:
        self.ladder, self.out, self.settings, self.view = ladder, out, settings, view
        self.config = ladder.config
        self.begun_s = time.monotonic()
        self.before_s = 0.0
        self.results: Results

    def run(self, corpus: Any, resume: bool, overwrite: bool, command: str) -> Results:
        """Do all remaining work."""
        executor = self._executor()
        machine = (
            this_machine(self.config.device)
            if executor is None
            else machine_of(executor, self.config.device)
        )
        plan = make_plan(self.config, machine, is_chinese=self.settings.mode == "chinese")
        if executor is not None:
            plan = replace(plan, num_helpers=0)
        plan, kept = self._opened(plan, corpus, resume, overwrite)
        rungs = [SPECS[name].rung() for name in self.ladder.chosen.names]
        for path in self.ladder.chosen.paths:
            rungs.append(own_rung(path, {rung.name for rung in rungs}))
        num_networks = sum(SPECS[name].is_network for name in self.ladder.chosen.names)
        num_tasks = len(self.ladder.tasks or BUILT_IN)
        load = Load(rungs, num_networks, words_in(corpus) or 0, num_tasks)
        sentences = said(plan, machine, len(rungs))
        seconds = estimated_s(plan, load, self.config)
        for sentence in (*sentences, *notes_beforehand(plan, self.ladder.chosen.names, seconds)):
            self.view.note(sentence)
        with warmed_up(self.ladder.chosen.names, self.view):
            text = open_text(
                corpus, self.settings, self.out / "text", max_words=plan.max_words,
                seed=self.config.seed, progress=self.view,
            )  # fmt: skip
            note_uncut_chinese(text.words.vocabulary, self.settings, self.view.note)
            plan = plan.for_text(text.words.num_tokens)
            brief = Brief(
                text=text, plan=plan, config=self.config, chosen=self.ladder.chosen,
                words=self.ladder.words, tasks=self.ladder.tasks, senses=self.ladder.senses,
                models=self.out / "models",
            )  # fmt: skip
            asked = brief.questions(self.view)
        notes = [*sentences, *notes_of(text, plan, self.config, self.ladder.chosen.names)]
        self.results = kept or Results(
            title=f"The ladder: {text.name}",
            corpus=text.corpus,
            budget=plan.budget,
            machine=machine,
            versions=versions(),
            seeds=[self.config.seed],
            started=datetime.now().astimezone().isoformat(timespec="seconds"),
            command=command,
            rungs=rungs,
            tasks=[
                one.full_task() if hasattr(one, "full_task") else one.task
                for one in asked.questions
            ],
            notes=notes,
        )
        self.before_s = self.results.seconds
        self._save()
        if executor is not None:
            run_on_cluster(self, brief, asked, executor)
        elif plan.num_helpers:
            run_in_workers(self, brief, asked)
        else:
            for rung in self.results.rungs:
                self._run_rung(brief, asked, rung.name)
        self.results = with_baselines(self.results)
        self._save()
        return self.results

    def _executor(self) -> RayTasks | None:
        """The cluster of this context; a rung there has the cores of its smallest node."""
        executor = cluster()
        if not isinstance(executor, RayTasks):
            return None
        executor.check_folder(self.out)
        cores = min(self.config.workers or executor.node_cores, executor.node_cores)
        self.config = replace(self.config, workers=cores)
        return executor

    # ---- beginning ------------------------------------------------------------------------

    def _identity(self, corpus: Any) -> dict[str, Any]:
        """What a resumed run must share with the original run."""
        options = asdict(self.config).items()
        tasks = self.ladder.tasks or {}
        found = {
            "options": {name: value for name, value in options if name not in _PASSING},
            "text": self.settings.to_dict(),
            "corpus": stream.fingerprint(corpus, self.settings),
            "words": list(map(stamped, self.ladder.words or [])),
            "senses": list(map(stamped, self.ladder.senses or [])),
            "tasks": {name: list(map(stamped, tasks[name])) for name in tasks},
        }
        return json.loads(json.dumps(found))

    def _opened(
        self, plan: LadderPlan, corpus: Any, resume: bool, overwrite: bool
    ) -> tuple[LadderPlan, Results | None]:
        """Create the folder, or load the plan and the results of an earlier run in it."""
        check_replaceable(self.out, KIND)
        identity, manifest = self._identity(corpus), self.out / MANIFEST
        if resume and manifest.exists():
            old = read_json(manifest)
            if old.get("identity") != identity:
                raise OptionError(
                    f"{self.out} was started with other options or another corpus"
                    f"{_differences(old.get('identity'), identity)}: give the same ones, another "
                    "--out, or --overwrite to delete it."
                )
            # Sizes stay the same, whatever machine the run continues on.
            plan = replace(
                LadderPlan(**old["plan"]), workers=plan.workers, device=plan.device,
                num_helpers=plan.num_helpers,
            )  # fmt: skip
            if not (self.out / FILE).exists():
                return plan, None
            self.view.note(f"Resuming {self.out}.")
            found = Results.load(self.out)
            cells = [cell for cell in found.cells if not cell.why.startswith(ENDED)]
            # A training that was only interrupted continues from its checkpoint; others start
            # again.
            rungs = [
                replace(rung, state="training", why="")
                if rung.options and rung.why.startswith(ENDED)
                else rung
                for rung in found.rungs
            ]
            return plan, replace(found, rungs=rungs, cells=cells)
        if manifest.exists():
            # Without results nothing was trained yet: for example, an option was wrong.
            if (self.out / FILE).exists() and not overwrite:
                raise OptionError(
                    f"{self.out} already holds a ladder: give --resume to continue it, --overwrite "
                    "to delete it and start over, or another --out."
                )
            for own in ("models", "text"):
                shutil.rmtree(self.out / own, ignore_errors=True)
            (self.out / FILE).unlink(missing_ok=True)
        write_json(manifest, {"kind": KIND, "identity": identity, "plan": asdict(plan)})
        return plan, None

    # ---- running --------------------------------------------------------------------------

    def _run_rung(self, brief: Brief, asked: LadderQuestions, name: str) -> None:
        if self.results.rung(name).state != "done":  # what failed before is tried again
            for news in training(brief, self.results.rung(name), self.view):
                self.take(news)
        rung = self.results.rung(name)
        if rung.state == "done":
            rung_model = RungModel(rung, Path(rung.path), asked.uses, self.config.device)
            wanted, looks = self.left_to_evaluate(name)
            for news in evaluating(brief, rung_model, asked, wanted, looks=looks):
                self.take(news)
        self.view.end(name)

    def left_to_evaluate(self, name: str) -> tuple[list[str], bool]:
        """The tasks that a rung has not done yet, and whether its visuals are missing."""
        tasks = [task.name for task in self.results.tasks]
        points = self.results.looks.pca.points if self.results.looks.pca else {}
        return [one for one in tasks if self.results.cell(name, one) is None], name not in points

    def take(self, news: News) -> None:
        """Record a piece of news, and show it."""
        if isinstance(news, Activity):
            self.view.begin(news.rung, news.what)
            return
        found = self.results
        if isinstance(news, Rung):
            rungs = [news if own.name == news.name else own for own in found.rungs]
            self.results = replace(found, rungs=rungs)
        elif isinstance(news, Cell):
            self.results = replace(found, cells=[*found.cells, news])
        else:
            self.results = replace(found, looks=found.looks.joined(news))
        self._save()

    def _save(self) -> None:
        seconds = self.before_s + time.monotonic() - self.begun_s
        self.results = replace(self.results, seconds=round(seconds, 1))
        self.results.save(self.out)
        self.view.show(self.results)


def _differences(old: Any, new: dict[str, Any]) -> str:
    """The options that differ, by name."""
    if not isinstance(old, dict) or not isinstance(old.get("options"), dict):
        return ""
    names = [name for name, value in new["options"].items() if old["options"].get(name) != value]
    names += [name for name in ("corpus", "words", "tasks", "senses") if old.get(name) != new[name]]
    return f" ({', '.join(names)})" if names else ""


# ---- in sentences --------------------------------------------------------------------------------


def said(plan: LadderPlan, machine: Machine, num_rungs: int) -> list[str]:
    """The budget of each rung, for the terminal and the report."""
    gpu = f", {machine.gpu}" if machine.gpu else ""
    place = f"{machine.cores} cores, {machine.memory / 2**30:.0f} GB{gpu}"
    tokens = format_count(plan.tokens, "tokens")
    given = f"{format_duration(plan.budget_s) if plan.is_timed else tokens} of training"
    return [
        f"{num_rungs} {'rung' if num_rungs == 1 else 'rungs'}, {given} for each, on {place}.",
        f"Sizes for this budget: {plan.preset} networks with {plan.vocab_size:,} sub-word tokens, "
        f"word vectors of {plan.dim} dimensions, language models of {plan.predicted_words:,} "
        f"words, up to {plan.num_rows:,} training rows per task.",
    ]


def notes_beforehand(plan: LadderPlan, names: Sequence[str], seconds: float) -> list[str]:
    """What will be done with these rungs, for the terminal only."""
    sentences = []
    if started := _started(plan, names):
        sentences.append(
            f"{started} starts from skip-gram vectors of the same text, which take a quarter of "
            "its training time, or one pass if that is longer."
        )
    if plan.num_helpers:
        has_networks, has_others = _trained_by(names)
        parts = ["Networks are trained one after the other on the GPU"] * has_networks
        if has_others:
            others = (
                "at the same time the other rungs" if has_networks else "Rungs are trained in turn"
            )
            parts.append(f"{others} on the CPU")
        sentences.append(f"{', and '.join(parts)}; then all are evaluated in parallel.")
    if plan.is_timed:
        units = (("hours", 3_600), ("minutes", 60))
        unit = next((name for name, size in units if seconds >= size), "")
        clock = f"{format_duration(seconds)} {unit}" if unit else f"{seconds:.0f} seconds"
        sentences.append(f"The whole run will take about {clock}.")
    return sentences


def _started(plan: LadderPlan, names: Sequence[str]) -> str:
    """The titles of the rungs that start with a skip-gram."""
    specs = [SPECS[name] for name in names]
    return ", ".join(spec.title for spec in specs if spec.options(plan).get("start_epochs"))


def _trained_by(names: Sequence[str]) -> tuple[bool, bool]:
    """Whether there are rungs to train on the GPU, and whether there are others."""
    is_network = [SPECS[name].is_network for name in names]
    return any(is_network), not all(is_network)


def _note_lanes(config: LadderConfig, names: Sequence[str]) -> str:
    has_networks, has_others = _trained_by(names)
    parts = ["networks had the GPU to themselves"] * has_networks
    if has_others:
        num = cpu_workers(config, has_networks=has_networks)
        parts.append(f"CPU models had {num} {'thread' if num == 1 else 'threads'}")
    return f"During training {', and '.join(parts)}; only the evaluation ran in parallel."


def notes_of(
    text: LadderText, plan: LadderPlan, config: LadderConfig, names: Sequence[str]
) -> list[str]:
    """How these rungs were trained and evaluated."""
    given = (
        "One-hot, counts and n-grams need one pass over the corpus. The speed of the other rungs "
        "was measured first, to train each for the same time. The table shows the actual times."
        if plan.is_timed
        else "Each rung was trained on the same number of its own tokens (words or sub-words); "
        "one-hot, counts and n-grams need one pass."
    )
    how = (
        "For sentence tasks, networks are fine-tuned and word vectors are read by a BiLSTM. Each "
        f"is trained on the same rows {config.seeds} times with another seed; ± is the standard "
        "deviation."
        if config.finetune
        else "Sentence tasks train the same linear head on the frozen vectors of every rung; "
        "fine-tuning would not fit the budget. Each head is trained on "
        f"{config.seeds} samples of rows; ± is the standard deviation."
    )
    words = (
        "In word tasks, a contextual model represents a word by its mean vector over uses in the "
        "training text: first, middle and last layer concatenated, dimensions standardized."
    )
    notes = [f"All rungs used the same training documents, split {text.split}.", given, how, words]
    if started := _started(plan, names):
        notes.append(
            f"{started} started from skip-gram vectors of the same text, for its input words and "
            "its softmax. Training them took a quarter of its time, or one pass if that is longer; "
            "its time and tokens include them."
        )
    if plan.num_helpers:
        notes.append(_note_lanes(config, names))
    if text.is_built_in:
        notes.append(
            "Docstrings repeat phrases, so their held-out text is easier, above all for n-grams."
        )
        notes += filter(None, [library.lacking()])
    return notes
