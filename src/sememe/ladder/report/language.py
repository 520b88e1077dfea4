"""Results in the language of the report: what the ladder wrote in English, translated."""

from dataclasses import replace

from sememe.ladder.results import Column, Results
from sememe.ladder.text import BUILT_IN
from sememe.localization import translate


def in_language(results: Results) -> Results:
    """The results with their own words translated; the user's words and names stay."""
    corpus = results.corpus
    return replace(
        results,
        title=translate(results.title),
        corpus=replace(
            corpus,
            name=translate(corpus.name) if corpus.name == BUILT_IN else corpus.name,
            split=translate(corpus.split),
        ),
        rungs=[
            replace(rung, title=translate(rung.title), why=translate(rung.why))
            for rung in results.rungs
        ],
        tasks=[_task_in_language(task) for task in results.tasks],
        cells=[replace(cell, why=translate(cell.why)) for cell in results.cells],
        notes=[translate(note) for note in results.notes],
    )


def _task_in_language(task: Column) -> Column:
    return replace(
        task,
        title=task.title if task.is_named else translate(task.title),
        what=translate(task.what),
        how=translate(task.how),
        baselines={translate(name): value for name, value in task.baselines.items()},
    )
