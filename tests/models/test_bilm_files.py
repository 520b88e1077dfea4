"""The files of the released ELMo: written here, read by us, compared with the published equations.

The model is written and computed in TensorFlow's conventions in NumPy alone, so that a mistake in
ours cannot hide in a shared line: shapes, gates i j f o, the forget bias, clips, character ids
shifted by one with a row of zeros for padding.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
h5py = pytest.importorskip("h5py")

import sememe
from sememe.errors import ArtifactError

H, P, K = 10, 6, 4
FILTERS = [[1, 3], [2, 4], [3, 5]]
F = sum(num for _, num in FILTERS)
OPTIONS: dict[str, Any] = {
    "lstm": {
        "cell_clip": 0.6, "proj_clip": 0.3, "dim": H, "projection_dim": P, "n_layers": 2,
        "use_skip_connections": True,
    },
    "char_cnn": {
        "activation": "relu", "embedding": {"dim": K}, "filters": FILTERS, "n_highway": 2,
        "n_characters": 262, "max_characters_per_token": 14,
    },
}  # fmt: skip
WORDS = ["the", "<UNK>", "cat", "</S>", "<S>", "苹果"]  # in no order of ours
SENTENCES = [["the", "cat", "eats", "苹果"], ["unbelievably-long-word"], ["The", "的"]]


def arrays() -> dict[str, np.ndarray]:
    random = np.random.default_rng(5)
    found = {"char_embed": random.normal(0, 1, (261, K))}
    for index, (size, num) in enumerate(FILTERS):
        found[f"CNN/W_cnn_{index}"] = random.normal(0, 1, (1, size, K, num))
        found[f"CNN/b_cnn_{index}"] = random.normal(0, 1, num)
    for index in range(2):
        for name in ("carry", "transform"):
            found[f"CNN_high_{index}/W_{name}"] = random.normal(0, 0.4, (F, F))
            found[f"CNN_high_{index}/b_{name}"] = random.normal(0, 1, F)
    found["CNN_proj/W_proj"] = random.normal(0, 0.4, (F, P))
    found["CNN_proj/b_proj"] = random.normal(0, 1, P)
    for direction in range(2):
        for index in range(2):
            place = f"RNN_{direction}/RNN/MultiRNNCell/Cell{index}/LSTMCell"
            found[f"{place}/W_0"] = random.normal(0, 0.6, (2 * P, 4 * H))
            found[f"{place}/B"] = random.normal(0, 0.6, 4 * H)
            found[f"{place}/W_P_0"] = random.normal(0, 0.6, (H, P))
    found["softmax/W"] = random.normal(0, 1, (len(WORDS), P))
    found["softmax/b"] = random.normal(0, 1, len(WORDS))
    return {name: value.astype(np.float32) for name, value in found.items()}


def write(folder: Path, options: dict[str, Any] = OPTIONS, **changes: np.ndarray | None) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "elmo_small_options.json").write_text(json.dumps(options))
    path = folder / "elmo_small_weights.hdf5"
    with h5py.File(path, "w") as file:
        for name, value in {**arrays(), **changes}.items():
            if value is not None:
                file.create_dataset(name, data=value)
    (folder / "words.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    return path


# ---- the published equations in NumPy -----------------------------------------------------------


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def characters(word: str) -> list[int]:
    """Ids after the shift by one, as the program's Batcher gives them."""
    most = OPTIONS["char_cnn"]["max_characters_per_token"]
    inner = {"<S>": [256], "</S>": [257]}.get(word, list(word.encode()))[: most - 2]
    ids = [258, *inner, 259]
    return [one + 1 for one in ids + [260] * (most - len(ids))]


def token_vectors(w: dict[str, np.ndarray], words: list[str]) -> np.ndarray:
    table = np.concatenate([np.zeros((1, K)), w["char_embed"]])
    rows = []
    for word in words:
        seen = table[characters(word)]
        found = []
        for index, (size, num) in enumerate(FILTERS):
            windows = np.stack(
                [
                    sum(seen[i + j] @ w[f"CNN/W_cnn_{index}"][0, j] for j in range(size))
                    for i in range(len(seen) - size + 1)
                ]
            )
            assert windows.shape[1] == num
            found.append(np.maximum((windows + w[f"CNN/b_cnn_{index}"]).max(0), 0))
        rows.append(np.concatenate(found))
    x = np.stack(rows)
    for index in range(2):
        part = f"CNN_high_{index}"
        carry = sigmoid(x @ w[f"{part}/W_carry"] + w[f"{part}/b_carry"])
        new = np.maximum(x @ w[f"{part}/W_transform"] + w[f"{part}/b_transform"], 0)
        x = carry * new + (1 - carry) * x
    return x @ w["CNN_proj/W_proj"] + w["CNN_proj/b_proj"]


def run_cells(w: dict[str, np.ndarray], place: str, x: np.ndarray) -> np.ndarray:
    cells, said, outputs = np.zeros(H), np.zeros(P), []
    for row in x:
        gates = np.concatenate([row, said]) @ w[f"{place}/W_0"] + w[f"{place}/B"]
        i, j, f, o = np.split(gates, 4)
        cells = np.clip(sigmoid(f + 1.0) * cells + sigmoid(i) * np.tanh(j), -0.6, 0.6)
        said = np.clip((sigmoid(o) * np.tanh(cells)) @ w[f"{place}/W_P_0"], -0.3, 0.3)
        outputs.append(said)
    return np.stack(outputs)


def reference_layers(words: list[str]) -> np.ndarray:
    w = {name: value.astype(np.float64) for name, value in arrays().items()}
    tokens = token_vectors(w, ["<S>", *words, "</S>"])
    layers = [np.concatenate([tokens, tokens], 1)]
    inputs = [tokens, tokens[::-1]]
    for index in range(2):
        for direction in range(2):
            place = f"RNN_{direction}/RNN/MultiRNNCell/Cell{index}/LSTMCell"
            said = run_cells(w, place, inputs[direction])
            inputs[direction] = said + inputs[direction] if index else said
        layers.append(np.concatenate([inputs[0], inputs[1][::-1]], 1))
    return np.stack(layers)[:, 1:-1]


# ---- reading ------------------------------------------------------------------------------------


def test_the_vectors_are_those_of_the_published_equations(tmp_path):
    model = sememe.ELMo.load(write(tmp_path / "elmo"))
    for words, found in zip(SENTENCES, model.layers(SENTENCES), strict=True):
        wanted = reference_layers(words)
        assert found.shape == wanted.shape == (3, len(words), 2 * P)
        np.testing.assert_allclose(found, wanted, atol=2e-6)
    clipped = np.abs(reference_layers(SENTENCES[0])[1])
    assert clipped.max() == pytest.approx(0.3)  # the clips are at work


def test_a_folder_opens_and_is_kept_in_our_own(tmp_path):
    write(tmp_path / "elmo")
    model = sememe.ELMo.load(tmp_path / "elmo")
    model.save(tmp_path / "ours")
    again = sememe.ELMo.load(tmp_path / "ours")
    assert np.array_equal(again.layers(SENTENCES)[0], model.layers(SENTENCES)[0])
    assert again.config.cell_clip == 0.6 and not again.config.has_softmax


def test_the_softmax_is_taken_with_the_list_of_words(tmp_path):
    path = write(tmp_path / "elmo")
    model = sememe.ELMo.load(path, vocabulary=tmp_path / "elmo" / "words.txt")
    assert list(model.vocabulary) == ["the", "cat", "苹果"]
    w = arrays()
    scores = model.network.next_logits(_one_row())[0].detach().numpy()
    wanted = w["softmax/W"] @ np.full(P, 0.5, np.float32) + w["softmax/b"]
    order = [WORDS.index(word) for word in ("<S>", "</S>", "<UNK>", "the", "cat", "苹果")]
    np.testing.assert_allclose(scores, wanted[order], rtol=1e-5)


def _one_row() -> Any:
    import torch

    return torch.full((1, P), 0.5)


def test_models_without_highways_or_projections_are_read(tmp_path):
    cnn = {**OPTIONS["char_cnn"], "n_highway": None, "filters": [[1, 2], [2, 4]]}
    lstm = {"dim": P, "projection_dim": P, "use_skip_connections": False, "n_layers": 1}
    random = np.random.default_rng(1)
    cell = "RNN_{}/RNN/MultiRNNCell/Cell0/LSTMCell"
    own = {
        "CNN/W_cnn_0": random.normal(size=(1, 1, K, 2)), "CNN/b_cnn_0": np.zeros(2),
        "CNN/W_cnn_1": random.normal(size=(1, 2, K, 4)), "CNN/b_cnn_1": np.zeros(4),
        f"{cell.format(0)}/W_0": random.normal(size=(2 * P, 4 * P)),
        f"{cell.format(0)}/B": np.zeros(4 * P),
        f"{cell.format(1)}/W_0": random.normal(size=(2 * P, 4 * P)),
        f"{cell.format(1)}/B": np.zeros(4 * P),
    }  # fmt: skip
    model = sememe.ELMo.load(write(tmp_path / "elmo", {"lstm": lstm, "char_cnn": cnn}, **own))
    assert model.layers([["cat"]])[0].shape == (2, 1, 2 * P)
    assert model.config.cell_clip == 0 and model.config.num_highways == 0


def test_files_that_do_not_fit_are_told_apart(tmp_path):
    path = write(tmp_path / "elmo")
    (path.parent / "elmo_small_options.json").unlink()
    with pytest.raises(ArtifactError, match=r"elmo_small_options\.json or options\.json"):
        sememe.ELMo.load(path)
    other = {"lstm": {**OPTIONS["lstm"], "dim": 12}, "char_cnn": OPTIONS["char_cnn"]}
    with pytest.raises(ArtifactError, match=r"W_0 has the shape \(12, 40\)"):
        sememe.ELMo.load(write(tmp_path / "wide", other))
    with pytest.raises(ArtifactError, match="lacks CNN_proj/W_proj"):
        sememe.ELMo.load(write(tmp_path / "short", **{"CNN_proj/W_proj": None}))
    with pytest.raises(ArtifactError, match="from a table"):
        sememe.ELMo.load(write(tmp_path / "words", {"lstm": OPTIONS["lstm"]}))
    with pytest.raises(ArtifactError, match="missing or not valid"):
        sememe.ELMo.load(write(tmp_path / "less", {"char_cnn": OPTIONS["char_cnn"]}))
    odd = {**OPTIONS, "char_cnn": {**OPTIONS["char_cnn"], "activation": "gelu"}}
    with pytest.raises(ArtifactError, match="cannot be used: activation"):
        sememe.ELMo.load(write(tmp_path / "odd", odd))
    path = write(tmp_path / "garbage")
    path.write_bytes(b"not hdf5")
    with pytest.raises(ArtifactError, match="HDF5"):
        sememe.ELMo.load(path)
    path = write(tmp_path / "list")
    (tmp_path / "list" / "words.txt").write_text("the\ncat\n")
    with pytest.raises(ArtifactError, match="<S>"):
        sememe.ELMo.load(path, vocabulary=tmp_path / "list" / "words.txt")


def test_a_pipe_in_place_of_the_weights_is_refused_at_once(tmp_path):
    write(tmp_path)
    (weights,) = tmp_path.glob("*.hdf5")
    weights.unlink()
    os.mkfifo(weights)
    with pytest.raises(ArtifactError, match=weights.name):
        sememe.ELMo.load(tmp_path)


def test_the_program_tells_and_embeds_them(tmp_path):
    from typer.testing import CliRunner

    from sememe.cli import app

    path = write(tmp_path / "elmo")
    told = CliRunner().invoke(app, ["info", str(path), "--json"])
    assert told.exit_code == 0 and json.loads(told.output)["lstm"]["projection_dim"] == P
    (tmp_path / "t.txt").write_text("the cat eats 苹果 .\n", encoding="utf-8")
    out = tmp_path / "w.npy"
    asked = ["embed", str(path), str(tmp_path / "t.txt"), "--pool", "words", "-o", str(out)]
    assert CliRunner().invoke(app, asked).exit_code == 0
    wanted = reference_layers(["the", "cat", "eats", "苹果", "."])[2]
    np.testing.assert_allclose(np.load(out), wanted, atol=2e-6)
