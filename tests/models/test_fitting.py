"""The one path from data to a saved model: what is refused, what is finished, what is saved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sememe
from sememe.errors import ArtifactError, OptionError, WriteError
from sememe.models.fitting import Prepared, Request, fit
from sememe.storage.checkpoints import Checkpoints, check_plan
from sememe.storage.folder import write_json
from sememe.training.distributed import Processes


class Toy:
    """A model that learns a number, and counts how often it was trained."""

    kind = "toy"

    def __init__(self, rate: int = 1) -> None:
        self.rate, self.number, self.num_trained = rate, 0, 0
        self.plan: dict = {}
        self.data: dict = {}

    def prepare(self, data, request):
        plan = {"config": {"rate": self.rate}, "content": str(data)}

        def train():
            self.num_trained += 1
            self.number = self.rate * data

        return Prepared(plan, train)

    def take_over(self, other):
        self.number, self.plan = other.number, other.plan

    def save(self, folder):
        Path(folder).mkdir(parents=True, exist_ok=True)
        manifest = {"kind": "toy", "number": self.number, "plan": self.plan}
        write_json(Path(folder) / "sememe.json", manifest)

    @classmethod
    def load(cls, folder):
        model, manifest = cls(), json.loads((Path(folder) / "sememe.json").read_text())
        model.number, model.plan = manifest["number"], manifest["plan"]
        return model


@pytest.fixture
def out(tmp_path):
    return tmp_path / "model"


def test_what_was_trained_is_saved_and_its_checkpoints_go(out):
    keeper = Checkpoints(f"{out}.checkpoints")
    with keeper.write(3):
        pass
    model = fit(Toy(2), 21, Request(out=out))
    assert Toy.load(out).number == model.number == 42
    assert model.plan == Toy.load(out).plan and not keeper.folder.exists()


def test_a_finished_run_is_opened_and_not_trained_again(out):
    fit(Toy(2), 21, Request(out=out))
    again = fit(Toy(2), 21, Request(out=out, resume=True))
    assert again.number == 42 and again.num_trained == 0
    assert fit(Toy(2), 21, Request(out=out, overwrite=True)).num_trained == 1  # without resume


def test_a_finished_run_of_other_options_or_data_is_refused(out):
    fit(Toy(2), 21, Request(out=out))
    with pytest.raises(OptionError, match="rate was 2, is 3"):
        fit(Toy(3), 21, Request(out=out, resume=True))
    with pytest.raises(ArtifactError, match="other text"):
        fit(Toy(2), 20, Request(out=out, resume=True))
    assert Toy.load(out).number == 42


def test_a_finished_run_that_is_damaged_is_not_opened(out):
    texts = [["a", "b", "c"]] * 9
    sememe.Word2Vec(dim=4, epochs=1, min_count=1, workers=1).fit(texts, out=out)
    path = out / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ArtifactError, match="damaged"):
        sememe.Word2Vec(dim=4, epochs=1, min_count=1, workers=1).fit(texts, out=out, resume=True)


def test_a_checkpoint_comes_before_a_finished_model(out):
    fit(Toy(2), 21, Request(out=out))
    with Checkpoints(f"{out}.checkpoints").write(3):
        pass
    assert fit(Toy(2), 21, Request(out=out, resume=True)).num_trained == 1


def test_one_of_several_processes_writes(out):
    model = fit(Toy(2), 21, Request(out=out, processes=Processes(rank=1, size=2)))
    assert model.number == 42 and not out.exists()


def test_bad_requests_are_named(out):
    with pytest.raises(OptionError, match="out"):
        Request(resume=True).check("toy")
    with pytest.raises(OptionError, match="checkpoint_minutes"):
        Request(checkpoint_minutes=-1).check("toy")
    fit(Toy(), 1, Request(out=out))
    with pytest.raises(WriteError, match=out.name):
        Request(out=out).check("bert")


def test_a_folder_that_has_the_name_of_a_file_from_before_is_resumed(tmp_path):
    (tmp_path / "v.bin.checkpoints").mkdir()
    Request(out=tmp_path / "v.bin", resume=True).check("toy")
    Request(out=tmp_path / "v1.2").check("toy")


def test_a_plan_that_says_nothing_is_refused(tmp_path):
    check_plan(tmp_path, {}, {})
    for old in (None, {}, []):
        with pytest.raises(ArtifactError, match=tmp_path.name):
            check_plan(tmp_path, old, {"config": {}})


MAKERS = {
    "word2vec": (lambda: sememe.Word2Vec(), ("nowhere.txt",)),
    "counts": (lambda: sememe.Counts(), ("nowhere.txt",)),
    "ngram": (lambda: sememe.NGram(), ("nowhere.txt",)),
    "elmo": (lambda: sememe.ELMo(), ("nowhere.txt",)),
    "bert": (lambda: sememe.BERT(), ("nowhere.txt",)),
    "transformer": (lambda: sememe.Transformer(), ("nowhere.en", "nowhere.de")),
    "classify": (lambda: sememe.Classify("nowhere"), ("nowhere.tsv",)),
}


@pytest.mark.parametrize("name", ["vectors.bin", "v.VEC", "glove.50d.txt", "m.ftz", "v.txt.gz"])
@pytest.mark.parametrize("kind", MAKERS)
def test_a_model_is_not_saved_under_the_name_of_a_file(kind, name, tmp_path):
    if kind not in ("word2vec", "counts", "ngram"):
        pytest.importorskip("torch")
    make, data = MAKERS[kind]
    with pytest.raises(OptionError, match=f"{name}.*sememe convert"):
        make().fit(*data, out=tmp_path / name)  # before the data is looked for
    assert not list(tmp_path.iterdir())


def test_a_model_that_is_there_is_replaced_only_when_asked(out):
    fit(Toy(2), 21, Request(out=out))
    again = Toy(2)
    with pytest.raises(WriteError, match="overwrite"):
        fit(again, 33, Request(out=out))
    assert again.num_trained == 0 and Toy.load(out).number == 42
    fit(again, 33, Request(out=out, overwrite=True))
    assert Toy.load(out).number == 66


def test_the_old_model_stays_until_the_new_one_is_whole(out):
    class Interrupted(Toy):
        def prepare(self, data, request):
            def train():
                assert Toy.load(out).number == 42
                raise KeyboardInterrupt

            return Prepared({}, train)

    fit(Toy(2), 21, Request(out=out))
    with pytest.raises(KeyboardInterrupt):
        fit(Interrupted(), 1, Request(out=out, overwrite=True))
    assert Toy.load(out).number == 42
