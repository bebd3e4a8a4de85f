"""The exporter, on small random weights whose right answer can be worked out."""

from __future__ import annotations

import json
import math
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import Tokenizer

from rag.embedding import DATA_FILE, DESCRIPTION_FILE, GRAPH_FILE, TOKENIZER_FILE, load_embedder
from rag.model_export.folder import read_folder
from rag.model_export.graph import write_float_graph
from rag.model_export.packed import read_packed, unigram_tokenizer
from rag.model_export.vocabulary import pieces_in_use, prune, share_of_equal_tokens
from rag.model_export.weights import LINEAR_NAMES, NORM_NAMES, Encoder, EncoderConfig, WeightsUnusable, check_shapes
from tests.conftest import ROOT, clean_environment

CONFIG = EncoderConfig(hidden=32, layers=2, heads=4, feed_forward=64, positions=40, layer_norm_epsilon=1e-6)
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
WORDS = ("▁tome", "▁agua", "▁con", "▁pan", "▁ins", "ulina", "▁вода", "вода", "▁水", "水", "▁", "µ", "12", "...")
LETTERS = tuple("abcdefghijklmnopqrstuvwxyzáéíóúñ")
ORIGINAL = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention_out": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "feed_in": "intermediate.dense",
    "feed_out": "output.dense",
    "feed_norm": "output.LayerNorm",
}
PACKED = {
    "query": "q",
    "key": "k",
    "value": "v",
    "attention_out": "ao",
    "feed_in": "fi",
    "feed_out": "fo",
    "attention_norm": "aln",
    "feed_norm": "oln",
}

Float32 = NDArray[np.float32]


def vocabulary() -> list[list[Any]]:
    """Pieces with scores: special ones, whole words (cheap), letters (dear)."""
    pieces = [*SPECIAL, *WORDS, *LETTERS, *("▁" + letter for letter in LETTERS)]
    dear = {piece for piece in pieces if len(piece.removeprefix("▁")) <= 1}
    return [[piece, 0.0 if piece in SPECIAL else -9.0 if piece in dear else -3.0] for piece in pieces]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    """A small random encoder."""
    random = np.random.default_rng(7)
    words = vocabulary()

    def normal(*shape: int, scale: float = 0.3) -> Float32:
        return random.normal(0, scale, shape).astype(np.float32)

    hidden, wide = CONFIG.hidden, CONFIG.feed_forward
    tensors = {
        "word": normal(len(words), hidden),
        "position": normal(CONFIG.positions, hidden),
        "type": normal(hidden),
        "norm.weight": 1 + normal(hidden, scale=0.1),
        "norm.bias": normal(hidden, scale=0.1),
    }
    for layer in range(CONFIG.layers):
        for name in LINEAR_NAMES:
            rows, columns = (wide if name == "feed_in" else hidden), (wide if name == "feed_out" else hidden)
            tensors[f"{layer}.{name}.weight"] = normal(rows, columns, scale=0.2)
            tensors[f"{layer}.{name}.bias"] = normal(rows, scale=0.1)
        for name in NORM_NAMES:
            tensors[f"{layer}.{name}.weight"] = 1 + normal(hidden, scale=0.1)
            tensors[f"{layer}.{name}.bias"] = normal(hidden, scale=0.1)
    tokenizer = unigram_tokenizer(words, bos=0, eos=2, pad=1, unknown=3)
    return Encoder(CONFIG, tensors, tokenizer)


def write_folder(encoder: Encoder, folder: Path, *, prefix: str = "", spare_rows: int = 0) -> Path:
    """The encoder as original weights are published."""
    tensors, hidden = encoder.tensors, encoder.config.hidden
    raw = {
        "embeddings.word_embeddings.weight": np.concatenate([tensors["word"], np.zeros((spare_rows, hidden), "f4")]),
        "embeddings.position_embeddings.weight": tensors["position"],
        "embeddings.token_type_embeddings.weight": np.stack([tensors["type"], tensors["type"] * 9]),
        "embeddings.LayerNorm.weight": tensors["norm.weight"],
        "embeddings.LayerNorm.bias": tensors["norm.bias"],
    }
    for layer in range(encoder.config.layers):
        for name, original in ORIGINAL.items():
            for part in ("weight", "bias"):
                raw[f"encoder.layer.{layer}.{original}.{part}"] = tensors[f"{layer}.{name}.{part}"]
    settings = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "position_embedding_type": "absolute",
        "hidden_size": hidden,
        "num_hidden_layers": encoder.config.layers,
        "num_attention_heads": encoder.config.heads,
        "intermediate_size": encoder.config.feed_forward,
        "max_position_embeddings": encoder.config.positions,
        "layer_norm_eps": encoder.config.layer_norm_epsilon,
    }
    folder.mkdir(parents=True, exist_ok=True)
    save_file({prefix + name: np.ascontiguousarray(value) for name, value in raw.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(settings), "utf-8")
    (folder / "tokenizer.json").write_text(json.dumps(encoder.tokenizer), "utf-8")
    return folder


def reference(encoder: Encoder, tokens: Sequence[int]) -> NDArray[np.float64]:
    """The sentence vector of BERT with mean pooling, written out in float64."""
    config, tensors = encoder.config, {name: value.astype(float) for name, value in encoder.tensors.items()}

    def norm(value: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        centred = value - value.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + config.layer_norm_epsilon)
        scaled: NDArray[np.float64] = centred / spread * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]
        return scaled

    def linear(value: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        product: NDArray[np.float64] = value @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]
        return product

    value = norm(tensors["word"][list(tokens)] + tensors["position"][: len(tokens)] + tensors["type"], "norm")
    size = config.hidden // config.heads
    for layer in range(config.layers):
        query, key, content = (linear(value, f"{layer}.{name}") for name in ("query", "key", "value"))
        mixed = np.empty_like(value)
        for head in range(config.heads):
            part = slice(head * size, (head + 1) * size)
            scores = query[:, part] @ key[:, part].T / math.sqrt(size)
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            mixed[:, part] = weights / weights.sum(axis=-1, keepdims=True) @ content[:, part]
        value = norm(value + linear(mixed, f"{layer}.attention_out"), f"{layer}.attention_norm")
        wide = linear(value, f"{layer}.feed_in")
        wide = wide * 0.5 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
        value = norm(value + linear(wide, f"{layer}.feed_out"), f"{layer}.feed_norm")
    mean: NDArray[np.float64] = value.mean(axis=0)
    return mean / np.linalg.norm(mean)


def run_graph(model_dir: Path, batch: Sequence[Sequence[int]]) -> Float32:
    session = onnxruntime.InferenceSession(str(model_dir / GRAPH_FILE), providers=["CPUExecutionProvider"])
    ids = np.zeros((len(batch), max(map(len, batch))), np.int64)
    mask = np.zeros_like(ids)
    for row, tokens in enumerate(batch):
        ids[row, : len(tokens)], mask[row, : len(tokens)] = tokens, 1
    vectors: Float32 = session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
    return vectors


BATCH = ([0, 4, 5, 2], [0, 2], [0, *range(4, 41), 2], [0, 7, 7, 7, 30, 2])


@pytest.mark.parametrize(("prefix", "spare_rows"), [("", 0), ("bert.", 5)])
def test_float_graph_equals_a_plain_implementation(
    encoder: Encoder, tmp_path: Path, prefix: str, spare_rows: int
) -> None:
    """The float32 graph of a safetensors folder gives BERT's vectors to 1e-5, padded in a batch or not."""
    read = read_folder(write_folder(encoder, tmp_path / "original", prefix=prefix, spare_rows=spare_rows))
    for name, tensor in encoder.tensors.items():
        assert np.array_equal(read.tensors[name], tensor), name
    (tmp_path / "model").mkdir()
    write_float_graph(read, tmp_path / "model")
    vectors = run_graph(tmp_path / "model", BATCH)
    for tokens, vector in zip(BATCH, vectors, strict=True):
        assert np.abs(vector - reference(encoder, tokens)).max() < 1e-5
        assert np.abs(run_graph(tmp_path / "model", [tokens])[0] - vector).max() < 1e-5


def test_pruning_keeps_tokens_and_rows(encoder: Encoder) -> None:
    """Kept words get the same tokens from the pruned tokenizer, and each new number has its piece's old row."""
    words = ["tome agua con pan", "insulina", "12 µg..."]
    kept = pieces_in_use(encoder.tokenizer, words)
    small = prune(encoder, kept)
    check_shapes(small, where="pruned")
    wide, narrow = (Tokenizer.from_str(json.dumps(part.tokenizer)) for part in (encoder, small))
    assert len(kept) < len(vocabulary())
    for text in words:
        before, after = wide.encode(text), narrow.encode(text)
        assert after.tokens == before.tokens
        assert np.array_equal(small.tensors["word"][after.ids], encoder.tensors["word"][before.ids])
        assert np.abs(reference(small, after.ids) - reference(encoder, before.ids)).max() < 1e-12
    for piece in (piece for piece, _ in small.tokenizer["model"]["vocab"]):
        old, new = wide.token_to_id(piece), narrow.token_to_id(piece)
        assert np.array_equal(small.tensors["word"][new], encoder.tensors["word"][old])


def test_pruning_drops_other_scripts_and_keeps_letters(encoder: Encoder) -> None:
    """Pieces of other scripts go; letters, signs and special tokens stay, so an unknown word falls into letters."""
    small = prune(encoder, pieces_in_use(encoder.tokenizer, ["agua"]))
    pieces = {piece for piece, _ in small.tokenizer["model"]["vocab"]}
    assert pieces.isdisjoint({"▁вода", "вода", "▁水", "水", "▁pan"})
    assert pieces >= {*SPECIAL, *LETTERS, "µ", "12", "...", "▁agua"}
    tokenizer = Tokenizer.from_str(json.dumps(small.tokenizer))
    spelled = tokenizer.encode("pan", add_special_tokens=False)
    assert "<unk>" not in spelled.tokens
    assert "".join(spelled.tokens) == "▁pan"
    assert tokenizer.token_to_id("<unk>") in tokenizer.encode("вода").ids


def test_share_of_equal_tokens_counts_both(encoder: Encoder) -> None:
    """The share of equal tokens is all of them for kept text, and none of a word that lost its piece."""
    small = prune(encoder, pieces_in_use(encoder.tokenizer, ["agua"]))
    assert share_of_equal_tokens(encoder.tokenizer, small.tokenizer, ["agua agua"]) == (2, 2)
    assert share_of_equal_tokens(encoder.tokenizer, small.tokenizer, ["pan"]) == (0, 1)
    assert share_of_equal_tokens(encoder.tokenizer, small.tokenizer, []) == (0, 0)


def pack(encoder: Encoder, *, four_bits: Callable[[str], bool] = lambda _: False, spare_rows: int = 3) -> bytes:
    """The encoder in the layout E5S1."""
    config = encoder.config
    pieces = [piece.encode() for piece, _ in encoder.tokenizer["model"]["vocab"]]
    scores = [score for _, score in encoder.tokenizer["model"]["vocab"]]
    table = np.concatenate([encoder.tensors["word"], np.zeros((spare_rows, config.hidden), "f4")])
    raw = {
        "emb.word": table,
        "emb.pos": encoder.tensors["position"],
        "emb.type": np.stack([encoder.tensors["type"], encoder.tensors["type"] * 9]),
        "emb.ln.w": encoder.tensors["norm.weight"],
        "emb.ln.b": encoder.tensors["norm.bias"],
    }
    for layer in range(config.layers):
        for name, short in PACKED.items():
            raw[f"l{layer}.{short}.w"] = encoder.tensors[f"{layer}.{name}.weight"]
            raw[f"l{layer}.{short}.b"] = encoder.tensors[f"{layer}.{name}.bias"]
    head = b"E5S1" + struct.pack("<I", 1)
    head += struct.pack(
        "<7i", config.hidden, config.layers, config.heads, config.feed_forward, len(table), config.positions, 2
    )
    head += struct.pack("<fi", config.layer_norm_epsilon, 32)
    offsets = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])])
    head += struct.pack("<i4iQ", len(pieces), 0, 2, 1, 3, int(offsets[-1]))
    head += offsets.astype("<u4").tobytes() + np.array(scores, "<f4").tobytes() + b"".join(pieces)
    mapping = struct.pack("<IBI", 0xAA, 1, 0x61)
    head += struct.pack("<iI", 1, len(mapping)) + mapping + struct.pack("<i", len(raw))
    blobs = {
        name: pack_4_bits(value) if four_bits(name) else value.astype("<f4").tobytes() for name, value in raw.items()
    }
    position = len(head) + sum(2 + len(name) + struct.calcsize("<BIQQ") for name in raw)
    for name, value in raw.items():
        head += struct.pack("<H", len(name)) + name.encode()
        head += struct.pack("<BIQQ", int(four_bits(name)), value.size, position, len(blobs[name]))
        position += len(blobs[name])
    return head + b"".join(blobs.values())


def pack_4_bits(values: Float32) -> bytes:
    """Blocks of 32 weights: a float16 scale, then byte j with weight j in its low half and j + 16 in its high one."""
    packed = b""
    for block in values.reshape(-1, 32):
        scale = np.float16(np.abs(block).max() / 7 or 1)
        numbers = np.clip(np.round(block / np.float32(scale)) + 8, 0, 15).astype(np.uint8)
        packed += scale.tobytes() + bytes((numbers[:16] | (numbers[16:] << 4)).tolist())
    return packed


def is_matrix(name: str) -> bool:
    return name == "emb.word" or (name.endswith(".w") and "ln" not in name)


def test_packed_weights_are_read_back(encoder: Encoder, tmp_path: Path) -> None:
    """A file in the packed layout gives back shape, tokenizer and weights; spare rows of the table are dropped."""
    path = tmp_path / "weights.bin"
    path.write_bytes(pack(encoder))
    read = read_packed(path)
    assert replace(read.config, layer_norm_epsilon=1e-6) == CONFIG
    assert read.config.layer_norm_epsilon == pytest.approx(1e-6)
    assert read.tokenizer == encoder.tokenizer
    assert set(read.tensors) == set(encoder.tensors)
    for name, tensor in encoder.tensors.items():
        assert np.array_equal(read.tensors[name], tensor), name


def test_four_bit_blocks_are_unpacked_in_order(encoder: Encoder, tmp_path: Path) -> None:
    """A 4-bit matrix comes back within half a step of each weight, every weight in its place."""
    path = tmp_path / "weights.bin"
    path.write_bytes(pack(encoder, four_bits=is_matrix))
    read = read_packed(path)
    for name in ("word", "0.query.weight", "1.feed_out.weight"):
        tensor = encoder.tensors[name]
        steps = np.abs(tensor.reshape(-1, 32)).max(axis=1, keepdims=True) / 7
        assert (np.abs(read.tensors[name] - tensor).reshape(-1, 32) <= 0.51 * steps + 1e-3).all(), name


def test_a_hand_made_block_has_the_values_of_the_formula(encoder: Encoder, tmp_path: Path) -> None:
    """Nibble n of a block with scale 0.5 is (n - 8) x 0.5, low halves first."""
    nibbles = list(range(16)) + list(reversed(range(16)))
    block = np.float16(0.5).tobytes() + bytes(nibbles[j] | (nibbles[j + 16] << 4) for j in range(16))
    data = pack(encoder, four_bits=is_matrix)
    start = data.index(pack_4_bits(encoder.tensors["word"]))
    path = tmp_path / "weights.bin"
    path.write_bytes(data[:start] + block + data[start + len(block) :])
    assert read_packed(path).tensors["word"][0].tolist() == [(nibble - 8) * 0.5 for nibble in nibbles]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "another magic": lambda data: b"GGUF" + data[4:],
    "only the magic": lambda data: data[:4],
    "cut in the header": lambda data: data[:20],
    "cut in the pieces": lambda data: data[:300],
    "cut in the table of tensors": lambda data: data[:1_500],
    "cut in the last tensor": lambda data: data[:-1],
    "another block size": lambda data: data[:40] + struct.pack("<i", 64) + data[44:],
    "more layers than tensors": lambda data: data[:12] + struct.pack("<i", 3) + data[16:],
    "negative layers": lambda data: data[:12] + struct.pack("<i", -1) + data[16:],
    "no heads": lambda data: data[:16] + struct.pack("<i", 0) + data[20:],
    "heads that do not divide": lambda data: data[:16] + struct.pack("<i", 5) + data[20:],
    "negative width": lambda data: data[:8] + struct.pack("<i", -32) + data[12:],
    "another width": lambda data: data[:8] + struct.pack("<i", 64) + data[12:],
    "a huge count of pieces": lambda data: data[:44] + struct.pack("<i", 2**31 - 1) + data[48:],
    "a special id out of range": lambda data: data[:48] + struct.pack("<i", 10**6) + data[52:],
    "tensor named otherwise": lambda data: data.replace(b"emb.pos", b"emb.POS"),
    "no UTF-8 in a name": lambda data: data.replace(b"emb.pos", b"emb.\xff\xfe\xfd"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_damaged_packed_weights_are_one_clear_error(
    encoder: Encoder, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    """A damaged file is refused by its name, as unusable weights and nothing else."""
    path = tmp_path / "weights.bin"
    path.write_bytes(damage(pack(encoder)))
    with pytest.raises(WeightsUnusable, match=r"weights\.bin"):
        read_packed(path)


def test_missing_packed_weights_are_named(tmp_path: Path) -> None:
    """A file that is not there is refused by its name."""
    with pytest.raises(WeightsUnusable, match=r"none\.bin"):
        read_packed(tmp_path / "none.bin")


def export(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, as a user runs it."""
    command = [sys.executable, "-m", "rag.model_export", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=clean_environment({}), capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture(scope="module")
def original(encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of original weights; not to be changed."""
    return write_folder(encoder, tmp_path_factory.mktemp("weights") / "tiny")


def test_exported_models_load_and_agree(encoder: Encoder, original: Path, tmp_path: Path) -> None:
    """Float32 gives the reference's vectors, int8 comes close, both load, and a second run does nothing."""
    vectors: dict[str, Float32] = {}
    texts = ["tome agua con pan", "insulina", "12 µg", "agua"]
    for precision in ("float32", "int8"):
        output = tmp_path / precision
        arguments = ["--from-folder", str(original), "--full-vocabulary", "--precision", precision]
        arguments += ["--output", str(output), "--name", "mini", "--license", "MIT"]
        made = export(*arguments)
        assert made.returncode == 0, made.stderr
        assert sorted(path.name for path in output.iterdir()) == sorted(
            (GRAPH_FILE, DATA_FILE, TOKENIZER_FILE, DESCRIPTION_FILE)
        )
        model = load_embedder(output)
        about = json.loads((output / DESCRIPTION_FILE).read_text("utf-8"))
        assert (about["name"], about["license"], about["precision"]) == ("mini", "MIT", precision)
        assert (about["dimension"], about["token_limit"], about["pieces"]) == (32, 40, len(vocabulary()))
        assert len(about["canaries"]) >= 5
        vectors[precision] = model.embed_passages(texts)
        stamps = {path: path.stat().st_mtime_ns for path in output.iterdir()}
        again = export(*arguments)
        assert again.returncode == 0
        assert "up to date" in again.stdout
        assert {path: path.stat().st_mtime_ns for path in output.iterdir()} == stamps
    tokenizer = Tokenizer.from_str(json.dumps(encoder.tokenizer))
    for text, exact, rough in zip(texts, vectors["float32"], vectors["int8"], strict=True):
        assert np.abs(exact - reference(encoder, tokenizer.encode("passage: " + text).ids)).max() < 1e-5
        assert float(exact @ rough) > 0.98
    assert not list(tmp_path.glob(".*")), "no work folder is left behind"


def test_changed_weights_are_exported_again(encoder: Encoder, tmp_path: Path) -> None:
    """A folder of weights that changed since the export is not up to date any more."""
    source = write_folder(encoder, tmp_path / "tiny")
    arguments = ("--from-folder", str(source), "--full-vocabulary", "--output", str(tmp_path / "model"))
    assert export(*arguments).returncode == 0
    before = load_embedder(tmp_path / "model").description.fingerprint
    write_folder(replace(encoder, tensors={**encoder.tensors, "word": encoder.tensors["word"][::-1]}), source)
    assert export(*arguments).returncode == 0
    assert load_embedder(tmp_path / "model").description.fingerprint != before


def alter(name: str, change: Callable[[Any], Any]) -> Callable[[Path], object]:
    """Rewrites a JSON file of a folder."""

    def rewrite(folder: Path) -> None:
        path = folder / name
        path.write_text(json.dumps(change(json.loads(path.read_text("utf-8")))), "utf-8")

    return rewrite


FOLDER_FAULTS: dict[str, Callable[[Path], object]] = {
    "no configuration": lambda folder: (folder / "config.json").unlink(),
    "no weights": lambda folder: (folder / "model.safetensors").unlink(),
    "no tokenizer": lambda folder: (folder / "tokenizer.json").unlink(),
    "weights cut short": lambda folder: (folder / "model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}"),
    "configuration not JSON": lambda folder: (folder / "config.json").write_text("{"),
    "configuration a list": lambda folder: (folder / "config.json").write_text("[]"),
    "no hidden size": alter("config.json", lambda found: {k: v for k, v in found.items() if k != "hidden_size"}),
    "hidden size as text": alter("config.json", lambda found: found | {"hidden_size": "32"}),
    "no heads": alter("config.json", lambda found: found | {"num_attention_heads": 0}),
    "heads that do not divide": alter("config.json", lambda found: found | {"num_attention_heads": 5}),
    "another model": alter("config.json", lambda found: found | {"model_type": "gpt2"}),
    "another activation": alter("config.json", lambda found: found | {"hidden_act": "relu"}),
    "more layers": alter("config.json", lambda found: found | {"num_hidden_layers": 3}),
    "another width": alter("config.json", lambda found: found | {"hidden_size": 64}),
    "another tokenizer": alter("tokenizer.json", lambda found: found | {"model": {"type": "BPE"}}),
    "tokenizer without pieces": alter("tokenizer.json", lambda found: found | {"model": {"type": "Unigram"}}),
    "tokenizer a list": alter("tokenizer.json", lambda found: [found]),
}


@pytest.mark.parametrize("fault", FOLDER_FAULTS.values(), ids=FOLDER_FAULTS.keys())
def test_a_faulty_folder_is_one_clear_error(encoder: Encoder, tmp_path: Path, fault: Callable[[Path], object]) -> None:
    """A folder of weights that cannot be used is refused by its name, as unusable weights and nothing else."""
    folder = write_folder(encoder, tmp_path / "tiny")
    fault(folder)
    with pytest.raises(WeightsUnusable, match="tiny"):
        read_folder(folder)


def test_the_command_ends_with_2_and_one_line(tmp_path: Path) -> None:
    """Weights that cannot be read end the command with status 2 and one line; a model that is there stays."""
    output = tmp_path / "model"
    output.mkdir()
    (output / "model.onnx").write_text("before", "utf-8")
    ended = export("--from-folder", str(tmp_path / "none"), "--output", str(output))
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert str(tmp_path / "none") in ended.stderr
    assert [path.name for path in output.iterdir()] == ["model.onnx"]


def test_help_names_the_options() -> None:
    """--help explains the options and ends with 0."""
    shown = export("--help")
    assert shown.returncode == 0
    for option in ("--output", "--from-folder", "--full-vocabulary", "--precision", "--force"):
        assert option in shown.stdout
