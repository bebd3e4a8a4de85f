"""Write an encoder as an ONNX graph: token ids in, unit-length sentence vectors out."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from rag.model_export.weights import Encoder, Float32

OPSET = 20
GRAPH_FILE = "model.onnx"
DATA_FILE = "model.onnx.data"
INPUT_IDS, ATTENTION_MASK, SENTENCE_VECTOR = "input_ids", "attention_mask", "sentence_vector"
_SMALL_BYTES = 1024


def write_float_graph(encoder: Encoder, model_dir: Path) -> None:
    """Write the float32 graph and its weights, as external data, into a folder."""
    model = _Graph(encoder).model()
    onnx.checker.check_model(model)
    _save(model, model_dir)


def write_int8_graph(encoder: Encoder, model_dir: Path, *, seven_bits: bool = True, per_channel: bool = True) -> None:
    """
    Write the graph with 8-bit weights, activations quantised as they come.

    Seven-bit weights cannot overflow the 16-bit sums of CPUs without VNNI, so every CPU gives the same vectors.
    """
    with tempfile.TemporaryDirectory(prefix="fichero-export-") as work:
        float_dir, int8_path = Path(work) / "float", Path(work) / "int8.onnx"
        float_dir.mkdir()
        write_float_graph(encoder, float_dir)
        # its one warning advises shape inference, which this small graph does not need
        logging.getLogger().setLevel(logging.ERROR)
        quantize_dynamic(
            float_dir / GRAPH_FILE,
            int8_path,
            op_types_to_quantize=["MatMul", "Gather"],
            per_channel=per_channel,
            reduce_range=seven_bits,
            weight_type=QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True},
        )
        _save(onnx.load(int8_path), model_dir)


def _save(model: onnx.ModelProto, model_dir: Path) -> None:
    (model_dir / DATA_FILE).unlink(missing_ok=True)  # onnx appends to a file that is there
    onnx.save_model(
        model,
        model_dir / GRAPH_FILE,
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location=DATA_FILE,
        size_threshold=_SMALL_BYTES,
    )
    (model_dir / DATA_FILE).chmod(0o644)  # onnx makes it private; the service may run as another user


class _Graph:
    """Adds nodes one after another; every method returns the name of its result."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.config = encoder.config
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def model(self) -> onnx.ModelProto:
        hidden_state, bias = self._embeddings(), self._attention_bias()
        for layer in range(self.config.layers):
            hidden_state = self._layer(layer, hidden_state, bias)
        self._mean_pool(hidden_state)
        graph = helper.make_graph(
            self.nodes,
            "sentence_encoder",
            [
                helper.make_tensor_value_info(INPUT_IDS, TensorProto.INT64, ["batch", "tokens"]),
                helper.make_tensor_value_info(ATTENTION_MASK, TensorProto.INT64, ["batch", "tokens"]),
            ],
            [helper.make_tensor_value_info(SENTENCE_VECTOR, TensorProto.FLOAT, ["batch", self.config.hidden])],
            list(self.constants.values()),
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)

    def _add(self, operator: str, *inputs: str, name: str | None = None, **attributes: object) -> str:
        result = name or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [result], name=f"node_{result}", **attributes))
        return result

    def _constant(self, name: str, values: np.ndarray) -> str:
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def _weight(self, name: str) -> str:
        return self._constant(name, self.encoder.tensors[name])

    def _integers(self, name: str, *values: int) -> str:
        return self._constant(name, np.array(values, dtype=np.int64))

    def _norm(self, value: str, name: str) -> str:
        epsilon = self.config.layer_norm_epsilon
        weight, bias = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        return self._add("LayerNormalization", value, weight, bias, axis=-1, epsilon=epsilon)

    def _linear(self, value: str, name: str, weight: Float32, bias: Float32) -> str:
        product = self._add("MatMul", value, self._constant(f"{name}.weight.t", weight.T))
        return self._add("Add", product, self._constant(f"{name}.bias", bias))

    def _named_linear(self, value: str, name: str) -> str:
        tensors = self.encoder.tensors
        return self._linear(value, name, tensors[f"{name}.weight"], tensors[f"{name}.bias"])

    def _embeddings(self) -> str:
        word = self._add("Gather", self._weight("word"), INPUT_IDS, axis=0)
        # all tokens are of type 0, so its row is added to every position once and for all
        positions = self.encoder.tensors["position"] + self.encoder.tensors["type"]
        length = self._add("Shape", INPUT_IDS, start=1, end=2)
        first, axis = self._integers("zero", 0), self._integers("axis_0", 0)
        position = self._add("Slice", self._constant("positions", positions), first, length, axis)
        return self._norm(self._add("Add", word, position), "norm")

    def _attention_bias(self) -> str:
        mask = self._add("Cast", ATTENTION_MASK, to=TensorProto.FLOAT, name="mask")
        hole = self._add("Sub", self._constant("one", np.array(1.0, np.float32)), mask)
        bias = self._add("Mul", hole, self._constant("minus_infinity", np.array(-1e9, np.float32)))
        return self._add("Unsqueeze", bias, self._integers("axes_1_2", 1, 2))

    def _layer(self, layer: int, value: str, bias: str) -> str:
        attended = self._named_linear(self._attention(layer, value, bias), f"{layer}.attention_out")
        value = self._norm(self._add("Add", value, attended), f"{layer}.attention_norm")
        wide = self._add("Gelu", self._named_linear(value, f"{layer}.feed_in"))
        fed = self._named_linear(wide, f"{layer}.feed_out")
        return self._norm(self._add("Add", value, fed), f"{layer}.feed_norm")

    def _attention(self, layer: int, value: str, bias: str) -> str:
        tensors, heads = self.encoder.tensors, self.config.heads
        size = self.config.hidden // heads
        # the scale goes into the query weights; one product makes query, key and value
        scale = np.float32(1.0 / np.sqrt(size))
        parts = [(tensors[f"{layer}.{n}.weight"], tensors[f"{layer}.{n}.bias"]) for n in ("query", "key", "value")]
        weight = np.concatenate([parts[0][0] * scale, parts[1][0], parts[2][0]])
        joined = np.concatenate([parts[0][1] * scale, parts[1][1], parts[2][1]])
        mixed = self._linear(value, f"{layer}.query_key_value", weight, joined)
        split = self._add("Reshape", mixed, self._integers("split_heads", 0, 0, 3 * heads, size))
        by_head = self._add("Transpose", split, perm=[0, 2, 1, 3])
        names = [f"{layer}_query", f"{layer}_key", f"{layer}_value"]
        sizes = self._integers("three_heads", heads, heads, heads)
        self.nodes.append(helper.make_node("Split", [by_head, sizes], names, name=f"node_{layer}_split", axis=1))
        query, key, values = names
        scores = self._add("MatMul", query, self._add("Transpose", key, perm=[0, 1, 3, 2]))
        weights = self._add("Softmax", self._add("Add", scores, bias), axis=-1)
        mixed_heads = self._add("Transpose", self._add("MatMul", weights, values), perm=[0, 2, 1, 3])
        return self._add("Reshape", mixed_heads, self._integers("join_heads", 0, 0, self.config.hidden))

    def _mean_pool(self, value: str) -> None:
        last = self._integers("axis_last", -1)
        weight = self._add("Unsqueeze", "mask", last)
        tokens = self._integers("axis_1", 1)
        # the mean's divisor cancels out in the unit length
        total = self._add("ReduceSum", self._add("Mul", value, weight), tokens, keepdims=0)
        length = self._add("ReduceL2", total, last, keepdims=1)
        floor = self._constant("tiny", np.array(1e-12, np.float32))
        self._add("Div", total, self._add("Max", length, floor), name=SENTENCE_VECTOR)
