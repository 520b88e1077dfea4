"""The released ELMo's files: options in JSON and weights in HDF5 in, a model of sememe out.

What bilm-tf writes, and AllenNLP reads, in TensorFlow's conventions:

    char_embed                      (261, K): rows of the characters; readers add one for padding
    CNN/W_cnn_i, b_cnn_i            (1, size, K, number), (number,)
    CNN_high_i/W_carry, b_carry …   (F, F), (F,): y = x W + b; `carry` is the gate
    CNN_proj/W_proj, b_proj         (F, P), (P,), where F is not P
    RNN_d/RNN/MultiRNNCell/Cell_i/LSTMCell/W_0, B, W_P_0
                                    (2 P, 4 H), (4 H,), (H, P): direction d, gates i, j, f, o, and
                                    a forget gate whose bias is 1 more than the file says
    softmax/W, b                    (V, P), (V,): where the training kept them, with a list of words

Cells and projections are held inside ± a number at every step. cuDNN cannot do that, so such a
model goes step by step; sizes are the file's own, and everything is checked against them.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from sememe.errors import ArtifactError, MissingExtraError, OptionError
from sememe.models.elmo.config import ELMoConfig
from sememe.models.elmo.network import ELMoNetwork
from sememe.nn.character_cnn import MARKS, NUM_CHARACTERS, CharacterCNN
from sememe.nn.layers import Linear
from sememe.nn.lstm import LSTMLayer
from sememe.storage.folder import open_regular, read_json, read_text
from sememe.tokens.vocabulary import Vocabulary
from sememe.training.weights import check_finite


def read_bilm(
    options: Path, weights: Path, vocabulary: Path | None = None
) -> tuple[ELMoNetwork, Vocabulary]:
    """Read a model; `vocabulary` lists its words in order, one per line.

    Words are encoded by their characters. The list is needed only for prediction, if the weights
    have a softmax; without it the vocabulary is empty.
    """
    with _opened(weights) as file:
        words = [] if vocabulary is None or "softmax" not in file else _read_words(vocabulary)
        try:
            network = ELMoNetwork(_config(read_json(options), len(words))).eval()
        except OptionError as error:
            raise ArtifactError(f"{options} cannot be used: {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ArtifactError(f"{options}: {error} is missing or not valid.") from error
        with torch.no_grad():
            _fill(network, _Weights(file, weights))
            if words:
                _fill_softmax(network, _Weights(file, weights), words)
    return network, Vocabulary.from_words([word for word in words if word not in MARKS])


def _opened(path: Path) -> Any:
    try:
        import h5py
    except ImportError:
        raise MissingExtraError("HDF5 files need h5py: pip install h5py.") from None
    try:
        open_regular(path).close()  # HDF5 would wait for a pipe
        return h5py.File(path, "r")
    except OSError as error:
        raise ArtifactError(f"{path} is not a readable HDF5 file ({error}).") from error


def _config(options: dict[str, Any], vocab_size: int) -> ELMoConfig:
    if "char_cnn" not in options:
        raise ArtifactError(
            "These options describe a model whose words come from a table, not by characters; "
            "such a model cannot be read."
        )
    lstm, cnn = options["lstm"], options["char_cnn"]
    return ELMoConfig(
        vocab_size=vocab_size,
        num_layers=int(lstm.get("n_layers", 1)),
        num_cells=int(lstm["dim"]),
        width=int(lstm["projection_dim"]),
        residual=bool(lstm["use_skip_connections"]),
        cell_clip=float(lstm.get("cell_clip") or 0),
        output_clip=float(lstm.get("proj_clip") or 0),
        char_width=int(cnn["embedding"]["dim"]),
        filters=" ".join(f"{int(size)}:{int(num)}" for size, num in cnn["filters"]),
        num_highways=int(cnn.get("n_highway") or 0),
        max_characters=int(cnn["max_characters_per_token"]),
        activation=str(cnn["activation"]),  # type: ignore[arg-type]
        dropout=float(options.get("dropout") or 0),
    )


class _Weights:
    """The arrays of a file by name, each of the expected shape."""

    def __init__(self, file: Any, path: Path) -> None:
        self._file, self._path = file, path

    def __call__(self, name: str, *shape: int) -> np.ndarray:
        try:
            if name not in self._file:
                raise ArtifactError(
                    f"{self._path} lacks {name}: it is not an ELMo with these options."
                )
            found = np.asarray(self._file[name], np.float32)
        except (OSError, RuntimeError, LookupError, ValueError, TypeError) as error:  # of h5py
            raise ArtifactError(f"{self._path} is damaged at {name} ({error}).") from error
        if found.shape != shape:
            raise ArtifactError(
                f"{self._path}: {name} has the shape {found.shape}, but the options say {shape}."
            )
        check_finite(torch.from_numpy(found), name, self._path)
        return found


def _put(parameter: Any, value: np.ndarray) -> None:
    parameter.copy_(torch.from_numpy(np.ascontiguousarray(value)))


def _put_linear(part: Linear, weight_IO: np.ndarray, bias_O: np.ndarray) -> None:
    _put(part.weight, weight_IO.T)
    _put(part.bias, bias_O)


def _fill(network: ELMoNetwork, weights: _Weights) -> None:
    cnn = network.input
    assert isinstance(cnn, CharacterCNN)
    _fill_characters(cnn, network.config, weights)
    for number, direction in enumerate((network.reads_forward, network.reads_backward)):
        for index, layer in enumerate(direction.layers):
            place = f"RNN_{number}/RNN/MultiRNNCell/Cell{index}/LSTMCell"
            _fill_layer(layer, network.config, weights, place)


def _fill_characters(cnn: CharacterCNN, config: ELMoConfig, weights: _Weights) -> None:
    _put(cnn.characters.weight, weights("char_embed", NUM_CHARACTERS, config.char_width))
    for index, (size, num) in enumerate(config.filter_sizes):
        kernel_1SKN = weights(f"CNN/W_cnn_{index}", 1, size, config.char_width, num)
        part: Any = cnn.filters[index]
        _put_linear(
            part,
            kernel_1SKN[0].transpose(1, 0, 2).reshape(-1, num),
            weights(f"CNN/b_cnn_{index}", num),
        )
    total = sum(num for _, num in config.filter_sizes)
    for index, highway in enumerate(cnn.highways):
        for own, name in ((highway.gate, "carry"), (highway.transform, "transform")):
            _put_linear(
                own,
                weights(f"CNN_high_{index}/W_{name}", total, total),
                weights(f"CNN_high_{index}/b_{name}", total),
            )
    if cnn.projection is not None:
        _put_linear(
            cnn.projection,
            weights("CNN_proj/W_proj", total, config.width),
            weights("CNN_proj/b_proj", config.width),
        )


def _fill_layer(layer: LSTMLayer, config: ELMoConfig, weights: _Weights, place: str) -> None:
    width, num_cells, lstm = config.width, config.num_cells, layer.lstm
    kernel = _gates(weights(f"{place}/W_0", 2 * width, 4 * num_cells))
    bias = _gates(weights(f"{place}/B", 4 * num_cells))
    bias[num_cells : 2 * num_cells] += 1.0
    _put(lstm.weight_ih_l0, kernel[:width].T)
    _put(lstm.weight_hh_l0, kernel[width:].T)
    _put(lstm.bias_ih_l0, bias)
    _put(lstm.bias_hh_l0, np.zeros_like(bias))
    if width < num_cells:
        _put(lstm.weight_hr_l0, weights(f"{place}/W_P_0", num_cells, width).T)


def _gates(values: np.ndarray) -> np.ndarray:
    """TensorFlow's gates (input, new, forget, output) in PyTorch's order."""
    own, new, forget, output = np.split(values, 4, -1)
    return np.concatenate([own, forget, new, output], -1)


def _read_words(path: Path) -> list[str]:
    words = read_text(path).split("\n")
    words = [word.strip() for word in words if word.strip() and word.strip() != "!!!MAXTERMID"]
    if missing := [mark for mark in MARKS if mark not in words]:
        raise ArtifactError(f"{path} lacks {' and '.join(missing)}: each is a word of such a list.")
    return words


def _fill_softmax(network: ELMoNetwork, weights: _Weights, words: list[str]) -> None:
    """Read the softmax, with its special tokens moved to the front."""
    marks = [words.index(mark) for mark in MARKS]
    order = [*marks, *(index for index, word in enumerate(words) if word not in MARKS)]
    num_words, width = len(words), network.config.width
    _put(network.table_VP[:num_words], weights("softmax/W", num_words, width)[order])
    _put(network.bias_V[:num_words], weights("softmax/b", num_words)[order])
