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
from dataclasses import asdict, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from sememe.errors import OptionError
from sememe.ladder.answers import with_baselines
from sememe.ladder.beside import ENDED, climb_beside
from sememe.ladder.climbing import Brief, Doing, News, asking, training
from sememe.ladder.config import LadderConfig
from sememe.ladder.machine import this_machine, versions
from sememe.ladder.notes import notes_of, said, said_beforehand
from sememe.ladder.own import own_rung
from sememe.ladder.plan import Load, Plan, estimated_s, make_plan
from sememe.ladder.questions import Interview
from sememe.ladder.results import FILE, Cell, Machine, Results, Rung
from sememe.ladder.rungs import SPECS, Chosen, choose
from sememe.ladder.splitting import words_in
from sememe.ladder.tasks import BUILT_IN, Questions, stamped
from sememe.ladder.text import LadderText, open_text
from sememe.ladder.view import View
from sememe.ladder.warming import warmed_up
from sememe.options import changed
from sememe.progress import Reporter
from sememe.storage.folder import MANIFEST, check_replaceable, read_json, write_json
from sememe.text.settings import TextSettings
from sememe.tokens.advice import note_uncut_chinese

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
        anew: bool = False,
        progress: Reporter | bool | None = None,
        command: str = "",
        **text_options: Any,
    ) -> Results:
        """Climb: train and ask every rung on `corpus` (None: the built-in one), write it to `out`.

        text or its fields by name (language="zh") say how text is read. With `resume` a run that
        was stopped in `out` goes on; with `anew` the ladder that is there is removed. Without one
        of them it stays as it is, and nothing is done.
        """
        if resume and anew:
            raise OptionError("Give resume or anew: a ladder goes on, or it begins again.")
        settings = changed(text or TextSettings(), "run", text_options)
        run = _Run(self, Path(out), settings, View.of(progress))
        with run.view:
            return run.climb(corpus, resume, anew, command)


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

    def climb(self, corpus: Any, resume: bool, anew: bool, command: str) -> Results:
        """Do all that is left to do."""
        machine = this_machine(self.config.device)
        is_chinese = self.settings.mode == "chinese"
        plan = make_plan(self.config, machine, is_chinese=is_chinese)
        plan, kept = self._opened(plan, corpus, resume, anew)
        rungs = self._rungs()
        num_networks = sum(SPECS[name].is_network for name in self.ladder.chosen.names)
        num_tasks = len(self.ladder.tasks or BUILT_IN)
        load = Load(rungs, num_networks, words_in(corpus) or 0, num_tasks)
        sentences = said(plan, machine, len(rungs))
        seconds = estimated_s(plan, load, self.config)
        for sentence in (*sentences, *said_beforehand(plan, self.ladder.chosen.names, seconds)):
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
        self.results = kept or self._begun(text, plan, asked, rungs, machine, notes, command)
        self.before_s = self.results.seconds
        self._save()
        if plan.num_helpers:
            climb_beside(self, brief, asked)
        else:
            for rung in self.results.rungs:
                self._climb_rung(brief, asked, rung.name)
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
            corpus=text.corpus,
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

    def _opened(
        self, plan: Plan, corpus: Any, resume: bool, anew: bool
    ) -> tuple[Plan, Results | None]:
        """Make the folder, or take up the plan and the results that a run before has left in it."""
        check_replaceable(self.out, KIND)
        identity, manifest = self._identity(corpus), self.out / MANIFEST
        if resume and manifest.exists():
            old = read_json(manifest)
            if old.get("identity") != identity:
                raise OptionError(
                    f"{self.out} was begun with other options or another text"
                    f"{_differences(old.get('identity'), identity)}: give the same again, another "
                    "--out, or --anew to remove it."
                )
            # Sizes stay what they were, whatever machine the run goes on with.
            plan = replace(
                Plan(**old["plan"]), workers=plan.workers, device=plan.device,
                num_helpers=plan.num_helpers,
            )  # fmt: skip
            if not (self.out / FILE).exists():
                return plan, None
            self.view.note(f"Going on with {self.out}.")
            found = Results.load(self.out)
            cells = [cell for cell in found.cells if not cell.why.startswith(ENDED)]
            # A training that only ended goes on from its checkpoint; others begin again.
            rungs = [
                replace(rung, state="training", why="")
                if rung.options and rung.why.startswith(ENDED)
                else rung
                for rung in found.rungs
            ]
            return plan, replace(found, rungs=rungs, cells=cells)
        if manifest.exists():
            # Without results nothing was trained yet: a mistake in an option, say, ended it.
            if (self.out / FILE).exists() and not anew:
                raise OptionError(
                    f"{self.out} holds a ladder: --resume goes on with it, --anew removes it and "
                    "begins again; or give another --out."
                )
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

    # ---- climbing -------------------------------------------------------------------------

    def _climb_rung(self, brief: Brief, asked: Questions, name: str) -> None:
        if self.results.rung(name).state != "done":  # what failed before is tried again
            for news in training(brief, self.results.rung(name), self.view):
                self.take(news)
        rung = self.results.rung(name)
        if rung.state == "done":
            interview = Interview(rung, Path(rung.path), asked.uses, self.config.device)
            wanted, looks = self.left_to_ask(name)
            for news in asking(brief, interview, asked, wanted, looks=looks):
                self.take(news)
        self.view.end(name)

    def left_to_ask(self, name: str) -> tuple[list[str], bool]:
        """The questions that a rung has not been asked yet, and whether it was looked at."""
        tasks = [task.name for task in self.results.tasks]
        points = self.results.looks.pca.points if self.results.looks.pca else {}
        return [one for one in tasks if self.results.cell(name, one) is None], name not in points

    def take(self, news: News) -> None:
        """Write down what was found, and show it."""
        if isinstance(news, Doing):
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
