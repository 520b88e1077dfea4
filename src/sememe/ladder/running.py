"""Ladder: a corpus in; every rung trained, asked and written down, and the results out.

The folder holds text/ (the corpus as it was split), models/ (a folder a rung), results.json, which
is written anew after every finished piece, and the report. A run that was stopped at any moment
goes on from there: finished rungs and cells stay, the rung in the middle from its last checkpoint.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from sememe.errors import OptionError, SememeError
from sememe.ladder.answers import FAILURES, answered, with_baselines
from sememe.ladder.config import LadderConfig
from sememe.ladder.looks import look_at
from sememe.ladder.machine import this_machine, versions
from sememe.ladder.notes import notes_of
from sememe.ladder.own import own_rung
from sememe.ladder.plan import Plan, estimated_s, make_plan, said
from sememe.ladder.questions import Interview
from sememe.ladder.results import FILE, Corpus, Machine, Results, Rung
from sememe.ladder.rungs import SPECS, Chosen, choose, needs_torch
from sememe.ladder.tasks import Questions, make_questions, stamped
from sememe.ladder.text import LadderText, open_text
from sememe.ladder.training import forget, planned, trained
from sememe.ladder.view import View
from sememe.ladder.warming import warm_up
from sememe.options import changed
from sememe.progress import Reporter
from sememe.storage.folder import MANIFEST, check_replaceable, read_json, write_json
from sememe.text.settings import TextSettings

KIND = "ladder"
# Options that may change between a run and its continuation.
_PASSING = ("workers", "device")


class Ladder:
    """Every model of the line on the same text with the same budget, asked the same questions.

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
        """Take the options of LadderConfig by name, and files of questions of one's own.

        `words` are files or folders of word pairs, analogies and the like; `tasks` labelled rows by
        kind, such as {"classify": ("train.tsv", "dev.tsv")}; `senses` files of ambiguous words.
        """
        if not isinstance(options.get("rungs", ""), str):
            options["rungs"] = ",".join(map(str, options["rungs"]))
        self.config: LadderConfig = changed(config or LadderConfig(), "Ladder", options)
        self.words, self.senses = _several(words), _several(senses)
        self.tasks = dict(tasks) if tasks else None
        self.chosen: Chosen = choose(self.config.rungs)

    def run(
        self,
        corpus: Any = None,
        *,
        out: str | Path = "runs/ladder",
        text: TextSettings | None = None,
        resume: bool = False,
        progress: Reporter | bool | None = None,
        command: str = "",
        **text_options: Any,
    ) -> Results:
        """Climb: train and ask every rung on `corpus` (None: the built-in one), write it to `out`.

        text or its fields by name (language="zh") say how text is read. With `resume` a run that
        was stopped in `out` goes on.
        """
        settings = changed(text or TextSettings(), "run", text_options)
        run = _Run(self, Path(out), settings, View.of(progress))
        with run.view:
            return run.climb(corpus, resume, command)


def _several(given: Any) -> list[str | Path] | None:
    if given is None:
        return None
    return [given] if isinstance(given, str | Path) else list(given)


class _Run:
    """One climb: what is known so far, and where it is written."""

    def __init__(self, ladder: Ladder, out: Path, settings: TextSettings, view: View) -> None:
        self.ladder, self.out, self.settings, self.view = ladder, out, settings, view
        self.config = ladder.config
        self.begun_s = time.monotonic()
        self.before_s = 0.0
        self.results: Results

    def climb(self, corpus: Any, resume: bool, command: str) -> Results:
        """Do all that is left to do."""
        machine = this_machine(self.config.device)
        is_chinese = self.settings.mode == "chinese"
        plan = make_plan(self.config, machine, is_chinese=is_chinese)
        plan, kept = self._opened(plan, corpus, resume)
        rungs = self._rungs()
        families = [rung.family for rung in rungs]
        sentences = said(plan, machine, len(rungs), estimated_s(plan, families, self.config))
        for sentence in sentences:
            self.view.note(sentence)
        warm_up(self.ladder.chosen.names, self.view)
        text = open_text(
            corpus, self.settings, self.out / "text", max_words=plan.max_words,
            seed=self.config.seed, progress=self.view,
        )  # fmt: skip
        plan = plan.for_text(text.words.num_tokens)
        asked = make_questions(
            text, plan, self.ladder.chosen, seeds=self.config.seeds, finetune=self.config.finetune,
            words=self.ladder.words, tasks=self.ladder.tasks, senses=self.ladder.senses,
            reporter=self.view,
        )  # fmt: skip
        notes = [*sentences, *notes_of(text, plan, self.config)]
        self.results = kept or self._begun(text, plan, asked, rungs, machine, notes, command)
        self.before_s = self.results.seconds
        self._save()
        for rung in self.results.rungs:
            self._climb_rung(rung.name, plan, text, asked)
        self.results = with_baselines(self.results)
        self._save()
        return self.results

    # ---- beginning ------------------------------------------------------------------------

    def _begun(
        self, text: LadderText, plan: Plan, asked: Questions, rungs: list[Rung], machine: Machine,
        notes: list[str], command: str,
    ) -> Results:  # fmt: skip
        """The results before anything is done."""
        return Results(
            title=f"The ladder: {text.name}",
            corpus=_corpus(text),
            budget=plan.budget,
            machine=machine,
            versions=versions(),
            seeds=[self.config.seed],
            started=datetime.now().astimezone().isoformat(timespec="seconds"),
            command=command,
            rungs=rungs,
            tasks=[question.task for question in asked.questions],
            notes=notes,
        )

    def _identity(self, corpus: Any) -> dict[str, Any]:
        """What a continued run must share with the run before."""
        from sememe.text import stream

        options = {
            one.name: getattr(self.config, one.name)
            for one in fields(self.config)
            if one.name not in _PASSING
        }
        tasks = self.ladder.tasks or {}
        found = {
            "options": options,
            "text": self.settings.to_dict(),
            "corpus": stream.fingerprint(corpus, self.settings),
            "words": list(map(stamped, self.ladder.words or [])),
            "senses": list(map(stamped, self.ladder.senses or [])),
            "tasks": {name: list(map(stamped, tasks[name])) for name in tasks},
        }
        return json.loads(json.dumps(found))

    def _opened(self, plan: Plan, corpus: Any, resume: bool) -> tuple[Plan, Results | None]:
        """Make the folder, or take up the plan and the results that a run before has left in it."""
        check_replaceable(self.out, KIND)
        identity, manifest = self._identity(corpus), self.out / MANIFEST
        if resume and manifest.exists():
            old = read_json(manifest)
            if old.get("identity") != identity:
                raise OptionError(
                    f"{self.out} was begun with other options or another text"
                    f"{_differences(old.get('identity'), identity)}: give the same again, or "
                    "leave out --resume."
                )
            # Sizes stay what they were, whatever machine the run goes on with.
            plan = replace(Plan(**old["plan"]), workers=plan.workers, device=plan.device)
            if not (self.out / FILE).exists():
                return plan, None
            self.view.note(f"Going on with {self.out}.")
            return plan, Results.load(self.out)
        if manifest.exists():
            self.view.note(f"Starting anew: what was in {self.out} is removed.")
            for own in ("models", "text"):
                shutil.rmtree(self.out / own, ignore_errors=True)
            (self.out / FILE).unlink(missing_ok=True)
        self.out.mkdir(parents=True, exist_ok=True)
        write_json(manifest, {"kind": KIND, "identity": identity, "plan": asdict(plan)})
        return plan, None

    def _rungs(self) -> list[Rung]:
        named = [SPECS[name].rung() for name in self.ladder.chosen.names]
        taken = {rung.name for rung in named}
        for path in self.ladder.chosen.paths:
            named.append(own_rung(path, taken))
            taken.add(named[-1].name)
        return named

    # ---- one rung -------------------------------------------------------------------------

    def _climb_rung(self, name: str, plan: Plan, text: LadderText, asked: Questions) -> None:
        rung = self.results.rung(name)
        if rung.state != "done":  # what failed before, on a full disk or so, is tried again
            self._train(rung, plan, text)
        rung = self.results.rung(name)
        if rung.state == "done":
            self._ask(rung, text, asked)

    def _train(self, rung: Rung, plan: Plan, text: LadderText) -> None:
        spec, out = SPECS[rung.name], self.out / "models" / rung.name
        if why := needs_torch(spec):
            self._put(replace(rung, state="left out", why=why))
            return
        try:
            if rung.state != "training":
                forget(out)
                self.view.begin(rung.name, "measuring")
                rung = planned(spec, replace(rung, why=""), plan, text, self.view)
                self._put(rung)
            self.view.begin(rung.name, "training")
            self._put(trained(spec, rung, plan, text, out, self.view))
        except FAILURES as error:
            why = str(error) or "There was too little memory."
            self._put(replace(rung, state="failed", why=why))

    def _ask(self, rung: Rung, text: LadderText, asked: Questions) -> None:
        interview = Interview(rung, Path(rung.path), asked.uses, self.config.device)
        for question in asked.questions:
            if self.results.cell(rung.name, question.task.name) is not None:
                continue
            self.view.begin(rung.name, f"asked: {question.task.title}")
            cell = answered(question, interview)
            self.results = replace(self.results, cells=[*self.results.cells, cell])
            self._save()
        points = self.results.looks.pca.points if self.results.looks.pca else {}
        if rung.name not in points:
            self.view.begin(rung.name, "looked at")
            with suppress(SememeError):  # of a model that cannot be opened; its cells say so
                looks = look_at(self.results.looks, interview, asked.shown, text)
                self.results = replace(self.results, looks=looks)
            self._save()
        self.view.end(rung.name)

    def _put(self, rung: Rung) -> None:
        """Replace what is known of a rung."""
        rungs = [rung if own.name == rung.name else own for own in self.results.rungs]
        self.results = replace(self.results, rungs=rungs)
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


def _corpus(text: LadderText) -> Corpus:
    train, heldout = text.words, text.heldout_words
    return Corpus(
        name=text.name,
        language=text.settings.language,
        documents=sum(text.documents.values()),
        words=train.num_tokens + heldout.num_tokens,
        train_documents=text.documents["train"],
        train_words=train.num_tokens,
        heldout_documents=text.documents["heldout"],
        heldout_words=heldout.num_tokens,
        vocabulary=len(train.vocabulary),
        split=text.split,
    )
