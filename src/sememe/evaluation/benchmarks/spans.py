"""Benchmarks of spans: names in sentences, answers in texts, English and Chinese."""

from __future__ import annotations

from sememe.evaluation.benchmarks import published
from sememe.evaluation.benchmarks.describing import Benchmark, Files, by_name

# ---- tags ---------------------------------------------------------------------------------

_CONLL = Benchmark(
    name="conll2003",
    title="CoNLL-2003, English names",
    kind="tag",
    train=(Files("conll*/eng.train"), Files("conll*/train.txt")),
    parts={
        "dev": (Files("conll*/eng.testa"), Files("conll*/valid.txt"), Files("conll*/dev.txt")),
        "test": (Files("conll*/eng.testb"), Files("conll*/test.txt")),
    },
    chooses="dev",
    metrics=("entity_f1", "entity_precision", "entity_recall"),
    published=published.CONLL,
    baseline="ELMo's baseline",
)
_MSRA = Benchmark(
    name="msra",
    title="MSRA, Chinese names",
    kind="tag",
    train=(Files("msra*/train.txt"),),
    parts={"test": (Files("msra*/test.txt"),)},
    metrics=("entity_f1", "entity_precision", "entity_recall"),
    published=published.MSRA,
)
_CLUENER = Benchmark(
    name="cluener",
    title="CLUENER, Chinese names of ten kinds",
    kind="tag",
    train=(Files("cluener*/train.json"),),
    parts={"dev": (Files("cluener*/dev.json"),)},
    metrics=("entity_f1", "entity_precision", "entity_recall"),
)

# ---- answers ------------------------------------------------------------------------------

_SQUAD_1 = Benchmark(
    name="squad1.1",
    title="SQuAD 1.1",
    kind="answer",
    train=(Files("squad*/train-v1.1.json"),),
    parts={"dev": (Files("squad*/dev-v1.1.json"),)},
    metrics=("squad_f1", "squad_exact"),
    published=published.SQUAD_1,
    baseline="ELMo's baseline",
)
_SQUAD_2 = Benchmark(
    name="squad2.0",
    title="SQuAD 2.0, with questions that have no answer",
    kind="answer",
    train=(Files("squad*/train-v2.0.json"),),
    parts={"dev": (Files("squad*/dev-v2.0.json"),)},
    metrics=("squad2_f1", "squad2_exact"),
    published=published.SQUAD_2,
)
_CMRC = Benchmark(
    name="cmrc2018",
    title="CMRC 2018, answers in Chinese",
    kind="answer",
    train=(Files("cmrc*/cmrc2018_train.json"), Files("cmrc*/train.json")),
    parts={
        "dev": (Files("cmrc*/cmrc2018_dev.json"), Files("cmrc*/dev.json")),
        "trial": (Files("cmrc*/cmrc2018_trial.json"),),
    },
    metrics=("cmrc_f1", "cmrc_exact"),
    published=published.CMRC,
)
_DRCD = Benchmark(
    name="drcd",
    title="DRCD, answers in traditional Chinese",
    kind="answer",
    train=(Files("drcd*/DRCD_training.json"),),
    parts={"dev": (Files("drcd*/DRCD_dev.json"),), "test": (Files("drcd*/DRCD_test.json"),)},
    chooses="dev",
    metrics=("cmrc_f1", "cmrc_exact"),
    published=published.DRCD,
)

TAG_SETS = by_name(_CONLL, _MSRA, _CLUENER)
ANSWER_SETS = by_name(_SQUAD_1, _SQUAD_2, _CMRC, _DRCD)
