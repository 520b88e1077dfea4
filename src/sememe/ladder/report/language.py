"""Results in the language of the report: what the ladder wrote in English, translated."""

from dataclasses import replace

from sememe.ladder.results import Column, Results, WordsVisual
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
        looks=replace(results.looks, pca=_words_in_language(results.looks.pca)),
    )


def _words_in_language(look: WordsVisual | None) -> WordsVisual | None:
    if look is None:
        return None
    return WordsVisual(
        groups={translate(name): words for name, words in look.groups.items()},
        points={
            rung: [point._replace(group=translate(point.group)) for point in points]
            for rung, points in look.points.items()
        },
    )


def _task_in_language(task: Column) -> Column:
    return replace(
        task,
        title=task.title if task.is_named else translate(task.title),
        what=translate(task.what),
        how=translate(task.how),
        baselines={translate(name): value for name, value in task.baselines.items()},
    )
