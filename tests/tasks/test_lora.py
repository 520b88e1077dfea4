"""LoRA in fine-tuning: resumed runs, ensembles, and models that it does not suit."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from quick_tasks import QUICK, assert_same

import sememe
from sememe.errors import OptionError
from sememe.models.huggingface.folder import save_folder
from sememe.tasks.trials import fit_trials
from stopping import killed_at


@pytest.fixture(scope="module")
def base(bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "base"
    save_folder(*bert, folder)
    return folder


def test_a_stopped_run_continues_to_the_bit(base, opinions, tmp_path):
    options = {**QUICK, "lora": 4, "learning_rate": 0.01, "layer_decay": 0.9}
    whole = sememe.Classify(base, **options).fit(opinions, out=tmp_path / "whole")
    with killed_at(7):
        sememe.Classify(base, **options).fit(opinions, out=tmp_path / "task")
    resumed = sememe.Classify(base, **options).fit(opinions, out=tmp_path / "task", resume=True)
    assert_same(whole, resumed)
    assert whole.scores.value > 0.8
    name = "adapter_model.safetensors"
    assert (tmp_path / "task" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert (tmp_path / "task" / name).stat().st_size < (base / "model.safetensors").stat().st_size
    assert_same(whole, sememe.load(tmp_path / "task"))


def test_an_ensemble_of_adapters(base, opinions, tmp_path):
    def make(options):
        return sememe.Classify(base, **{**QUICK, "lora": 2, "epochs": 1.0} | options)

    trials = [{"seed": 1}, {"seed": 2}]
    task = fit_trials(make, trials, opinions, out=tmp_path / "both", ensemble=True)
    again = sememe.load(tmp_path / "both")
    assert again.predict(["a fine film"]) == task.predict(["a fine film"])
    assert (tmp_path / "both" / "member-2" / "adapter_config.json").is_file()


def test_continuing_from_an_adapter_trains_all_weights(base, opinions, tmp_path):
    first = sememe.Classify(base, **{**QUICK, "lora": 2, "epochs": 1.0})
    first.fit(opinions, out=tmp_path / "first")
    second = sememe.Classify(tmp_path / "first", **{**QUICK, "epochs": 1.0})
    second.fit(opinions, out=tmp_path / "second")
    assert (tmp_path / "second" / "model.safetensors").is_file()
    assert sememe.load(tmp_path / "second").predict(["fine"]) == second.predict(["fine"])


def test_word_vectors_have_no_matrices_to_update(opinions):
    vectors = sememe.Word2Vec(dim=8, epochs=1, min_count=1).fit([text for text, _ in opinions])
    with pytest.raises(OptionError, match="BERT or GPT"):
        sememe.Classify(vectors, **{**QUICK, "lora": 2}).fit(opinions)
