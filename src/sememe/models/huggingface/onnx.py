"""BERT in ONNX: a network in, a graph for onnxruntime out, in float32 or int8; and running it.

The graph takes input_ids, attention_mask and token_type_ids, as those of other programs do, and
gives last_hidden_state. It is built from the fused operators of onnxruntime. A folder that has one
beside its weights, and says so in sememe.json, computes the vectors of texts with it; all else,
such as attention maps or fine-tuning, uses the weights. B rows, T positions, N tokens, D width.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sememe.errors import ArtifactError, MissingExtraError, UnsupportedError
from sememe.examples.docstring_tasks import docstring_texts
from sememe.machine import available_cores
from sememe.metrics.word_scores import spearman
from sememe.models.bert.network import BERTNetwork
from sememe.models.huggingface.layout import GRAPH
from sememe.nn.rows import RowLayout

_OPSET, _MICROSOFT = 17, "com.microsoft"
_NAMES = ("input_ids", "attention_mask", "token_type_ids")
_SAMPLE = 512  # sentences that show what int8 costs


@contextmanager
def _onnx_libraries() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"ONNX needs the library {error.name}: pip install 'sememe[onnx]'."
        ) from error


class _Graph:
    """Collects the nodes and weights of a graph."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def weight(self, value: Any) -> str:
        """Add a constant; return its name."""
        from onnx import numpy_helper

        own = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(own), name))
        return name

    def add(self, operator: str, *inputs: str, domain: str = "", **options: Any) -> str:
        """Add a node; return the name of its output."""
        from onnx import helper

        name = f"{operator}{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(operator, list(inputs), [name], name, domain=domain, **options)
        )
        return name

    def fused(self, operator: str, *inputs: str, **options: Any) -> str:
        """Add one of onnxruntime's own operators."""
        return self.add(operator, *inputs, domain=_MICROSOFT, **options)


_ACTIVATIONS = {"gelu": "BiasGelu", "gelu_tanh": "FastGelu"}


def build_graph(network: Any) -> Any:
    """The network as an ONNX model."""
    if not isinstance(network, BERTNetwork):
        raise UnsupportedError("Only BERT, and what is built on it, can become ONNX.")
    with _onnx_libraries():
        from onnx import TensorProto, checker, helper

    graph, config, embedding = _Graph(), network.config, network.embedding
    ids, mask, segments = _NAMES
    tokens = graph.add("Gather", graph.weight(embedding.tokens.weight), ids)
    kinds = graph.add("Gather", graph.weight(embedding.segments.weight), segments)
    shape = graph.add("Shape", ids, start=1, end=2)
    zero = graph.weight(np.zeros(1, np.int64))
    places = graph.add("Slice", graph.weight(embedding.positions.weight), zero, shape, zero)
    summed = graph.add("Add", graph.add("Add", tokens, kinds), places)
    norm = embedding.norm
    hidden = graph.add(
        "LayerNormalization", summed, graph.weight(norm.weight), graph.weight(norm.bias),
        epsilon=norm.eps, axis=-1,
    )  # fmt: skip
    seen = graph.add("Cast", mask, to=TensorProto.INT32)
    for block in network.stack:
        attention, feed_forward = block.attention, block.feed_forward
        mixed = graph.fused(
            "Attention", hidden, graph.weight(attention.projection.weight.T),
            graph.weight(attention.projection.bias), seen, num_heads=config.num_heads,
        )  # fmt: skip
        hidden = _added(graph, mixed, attention.output, hidden, block.attention_norm)
        inner = graph.add("MatMul", hidden, graph.weight(feed_forward.inner.weight.T))
        bias = graph.weight(feed_forward.inner.bias)
        if config.activation in _ACTIVATIONS:
            inner = graph.fused(_ACTIVATIONS[config.activation], inner, bias)
        else:
            inner = graph.add("Relu", graph.add("Add", inner, bias))
            if config.activation == "relu2":
                inner = graph.add("Mul", inner, inner)
        hidden = _added(graph, inner, feed_forward.output, hidden, block.feed_forward_norm)
    graph.add("Identity", hidden)
    graph.nodes[-1].output[0] = "last_hidden_state"
    integer, real = TensorProto.INT64, TensorProto.FLOAT
    model = helper.make_model(
        helper.make_graph(
            graph.nodes, "bert",
            [helper.make_tensor_value_info(name, integer, ["rows", "tokens"]) for name in _NAMES],
            [helper.make_tensor_value_info(
                "last_hidden_state", real, ["rows", "tokens", config.width])],
            graph.weights,
        ),
        opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid(_MICROSOFT, 1)],
        ir_version=9, producer_name="sememe",
    )  # fmt: skip
    checker.check_model(model)
    return model


def _added(graph: _Graph, inner: str, linear: Any, before: str, norm: Any) -> str:
    """A linear map, added to what was before, and normalized."""
    mapped = graph.add("MatMul", inner, graph.weight(linear.weight.T))
    return graph.fused(
        "SkipLayerNormalization", mapped, before, graph.weight(norm.weight),
        graph.weight(norm.bias), graph.weight(linear.bias), epsilon=norm.eps,
    )  # fmt: skip


def write_graph(network: Any, path: Path, *, int8: bool = False) -> None:
    """Write the network as an ONNX file; int8 quantizes the weights of its products."""
    with _onnx_libraries():
        import onnx
        import onnxruntime  # noqa: F401  # which runs it

    if network.config.family != "bert":
        raise UnsupportedError(
            f"A network of the family {network.config.family} cannot become ONNX here: only BERT's "
            "blocks are written."
        )
    model = build_graph(network)
    if not int8:
        onnx.save(model, path)
        return
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        plain = Path(folder) / GRAPH
        # Otherwise the library logs a warning; there is nothing to optimize in this graph.
        onnx.helper.set_model_props(model, {"onnx.quant.pre_process": "onnxruntime.quant"})
        onnx.save(model, plain)
        quantize_dynamic(
            plain, path, op_types_to_quantize=["MatMul", "Attention"], per_channel=True,
            weight_type=QuantType.QInt8,
            # Shapes are not inferred through onnxruntime's own operators.
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
        )  # fmt: skip


class ONNXEngine:
    """Runs a graph in place of a network's blocks."""

    def __init__(self, path: Path) -> None:
        with _onnx_libraries():
            import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = available_cores()
        options.log_severity_level = 3
        # Threads that wait by spinning take the cores from the tokenizer.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self.session = onnxruntime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # the library's errors have no common class
            raise ArtifactError(f"{path} cannot be run: {str(error).splitlines()[0]}") from error

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        """Leave a network's copy without an engine: it is trained, and this graph is not."""

    def encode(self, ids_N: Tensor, segments_N: Tensor | None, rows: RowLayout) -> Tensor:
        """Vectors of concatenated tokens, (N, D)."""
        segments_N = torch.zeros_like(ids_N) if segments_N is None else segments_N
        if rows.places_N is None and rows.is_token_BT is not None:
            mask_BT = rows.is_token_BT.long()
        else:
            mask_BT = rows.padded(torch.ones_like(ids_N))
        inputs = (rows.padded(ids_N), mask_BT, rows.padded(segments_N))
        feed = {name: own.long().cpu().numpy() for name, own in zip(_NAMES, inputs, strict=True)}
        (found_BTD,) = self.session.run(["last_hidden_state"], feed)
        flat = torch.from_numpy(found_BTD).to(ids_N.device).flatten(0, 1)
        return flat if rows.places_N is None else flat.index_select(0, rows.places_N)


def compare(plain: Any, fast: Any) -> dict[str, float]:
    """How much the vectors of one model differ from those of another, and the ratio of speeds."""
    texts = sample_texts()
    times: dict[int, list[float]] = {0: [], 1: []}
    vectors: list[np.ndarray] = []
    for index, model in enumerate((plain, fast)):
        vectors.append(model.embed(texts))
        lengths = np.linalg.norm(vectors[index], axis=1, keepdims=True)
        vectors[index] = vectors[index] / np.maximum(lengths, 1e-12)
    for _ in range(3):
        for index, model in enumerate((plain, fast)):
            begun = time.perf_counter()
            model.embed(texts[: _SAMPLE // 4])
            times[index].append(time.perf_counter() - begun)
    above = np.triu_indices(len(texts), 1)
    similar = [(own @ own.T)[above] for own in vectors]
    found = {
        "cosine": round(float((vectors[0] * vectors[1]).sum(1).mean()), 5),
        "rank_correlation": round(float(spearman(*similar)), 5),
        "largest_difference": float(f"{np.abs(vectors[0] - vectors[1]).max():.2g}"),
        "speed_ratio": round(float(np.median(times[0]) / np.median(times[1])), 2),
    }
    # Texts that are all alike have no order.
    return {name: own for name, own in found.items() if np.isfinite(own)}


def sample_texts() -> list[str]:
    """Sentences of the built-in corpus to compare models with."""
    return [text for text in docstring_texts() if 20 < len(text) < 300][:_SAMPLE]
