"""Trains a network that finds the function that a report is about, on the histories of other projects.

Two encoders learn by contrast (InfoNCE, van den Oord et al., 2018): of all functions in the batch, the changed one must
be nearest to the message of its change. A batch contains a few repositories, and many functions of each, half of them
from the same files: these are the hard negatives.

    python bench/train_reader.py pack --mined DIR --out reader.pack.xz     # tokens, once
    python bench/train_reader.py train --pack reader.pack.xz --out DIR --seconds 240

``--mined`` has one file of pairs per repository, ``OWNER+NAME.jsonl.gz``; a line is ``{"q": message, "u": [[path,
qualified name, source], ...]}``. The script runs on a CPU and on a GPU; with ``--query-layers 0 --document-layers 0`` it
trains a bag of embeddings. A checkpoint is written every ``--save-every`` seconds, and a run with the same ``--out``
resumes from it.

The scores of two such networks did not improve the ranking; `results/reader_ablation.json` has the measurement and the
commit with the scripts that mined the pairs and computed the scores.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import lzma
import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

SEED = 20_200_627
PADDING, UNKNOWN, SEPARATOR = 0, 1, 2
"""Tokens that are not pieces of words."""
QUERY_TOKENS, DOCUMENT_TOKENS, HEADS = 96, 160, 4
"""The rest of a report or a function is ignored."""
VOCABULARY = 16_384
VALIDATED = 6
"""Number of repositories that are held out for validation."""
_DIRECTORIES = 3
"""Number of directories above a file that are read."""
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]{1,2}(?![0-9])")

Ints = npt.NDArray[np.int64]


def main() -> None:
    """Packs pairs or trains."""
    parser = argparse.ArgumentParser(description=__doc__)
    actions = parser.add_subparsers(required=True, dest="action")
    pack = actions.add_parser("pack", help="Write the tokens of mined pairs to one file.")
    pack.add_argument("--mined", type=Path, required=True, help="directory of mined pairs")
    pack.add_argument("--out", type=Path, required=True, help="file to write; vocabulary.txt is written next to it")  # fmt: skip
    training = actions.add_parser("train", help="Train the network.")
    training.add_argument("--pack", type=Path, required=True)
    training.add_argument("--out", type=Path, required=True, help="directory for checkpoints and weights")  # fmt: skip
    training.add_argument("--seconds", type=float, default=240.0, help="duration of the training")
    training.add_argument("--save-every", type=float, default=60.0)
    training.add_argument("--width", type=int, default=256)
    training.add_argument("--dimensions", type=int, default=128, help="length of the vectors")
    training.add_argument("--query-layers", type=int, default=6)
    training.add_argument("--document-layers", type=int, default=3)
    training.add_argument("--batch", type=int, default=2048, help="pairs in a batch")
    training.add_argument("--groups", type=int, default=8, help="repositories in a batch")
    training.add_argument("--rate", type=float, default=1e-3, help="largest learning rate")
    training.add_argument("--dropout", type=float, default=0.1)
    options = parser.parse_args()
    if options.action == "pack":
        pack_pairs(options.mined, options.out)
    else:
        train(options)


# Tokens


class Vocabulary(dict[str, tuple[int, ...]]):
    """The numbers of the pieces of each word; a word that is not a piece is split greedily.

    Args:
        pieces: in the order of their numbers; a piece that continues a word begins with ``##``.
    """

    def __init__(self, pieces: Iterable[str]) -> None:
        super().__init__()
        self.pieces = {piece: number for number, piece in enumerate(pieces, SEPARATOR + 1)}

    def __missing__(self, word: str) -> tuple[int, ...]:
        numbers: list[int] = []
        begin = 0
        while begin < len(word):
            mark = "##" if begin else ""
            ends = (
                end for end in range(len(word), begin, -1) if mark + word[begin:end] in self.pieces
            )
            end = next(ends, None)
            if end is None:
                numbers = [UNKNOWN]
                break
            numbers.append(self.pieces[mark + word[begin:end]])
            begin = end
        self[word] = tuple(numbers)
        return self[word]

    def tokens(self, text: str, most: int) -> list[int]:
        """The first tokens of a text."""
        found: list[int] = []
        for match in _WORD.finditer(text):
            found.extend(self[match[0].lower()])
            if len(found) >= most:
                break
        return found[:most]

    def query(self, message: str) -> list[int]:
        """The tokens of a message: of its first line, then of the rest."""
        title, _, rest = message.partition("\n")
        found = [*self.tokens(title, QUERY_TOKENS - 1), SEPARATOR]
        return found + self.tokens(rest, QUERY_TOKENS - len(found))

    def document(self, path: str, name: str, text: str) -> list[int]:
        """The tokens of a function: path, qualified name, source."""
        parts = PurePosixPath(path).with_suffix("").parts[-1 - _DIRECTORIES :]
        head = [*self.tokens(" ".join(parts), 16), SEPARATOR, *self.tokens(name, 16), SEPARATOR]
        return [*head, *self.tokens(text, DOCUMENT_TOKENS - len(head))]


def _vocabulary(repositories: Sequence[Path], path: Path) -> Vocabulary:
    """The vocabulary in the file; the file is written if it does not exist."""
    if not path.exists():
        counts: Counter[str] = Counter()
        for repository in repositories:
            own: Counter[str] = Counter()
            for row in list(_rows(repository))[::2]:
                for text in (row["q"], row["u"][0][2]):
                    own.update(match[0].lower() for match in _WORD.finditer(text))
            # A word that one repository repeats is not common in general.
            counts.update({word: min(count, 1000) for word, count in own.items()})
        path.write_text("\n".join(_pieces(counts)) + "\n", encoding="utf-8")
    return Vocabulary(path.read_text(encoding="utf-8").split())


def _pieces(counts: Counter[str]) -> list[str]:
    """Single characters, frequent words, and frequent continuations of these."""
    single = [f"{mark}{c}" for mark in ("", "##") for c in "abcdefghijklmnopqrstuvwxyz0123456789"]
    room = VOCABULARY - 3 - len(single)
    chosen = [word for word, _ in counts.most_common(room * 5 // 6) if len(word) > 1]
    words = set(chosen)
    rests: Counter[str] = Counter()
    for word, count in counts.items():
        if word not in words:
            end = next((n for n in range(len(word) - 1, 1, -1) if word[:n] in words), 1)
            rests[f"##{word[end:]}"] += count
    rest = [piece for piece, _ in rests.most_common() if len(piece) > 3][: room - len(chosen)]
    return [*single, *chosen, *rest]


# Packing


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def pack_pairs(mined: Path, out: Path) -> None:
    """Write all pairs as tokens, ordered by repository and path."""
    repositories = sorted(mined.glob("*.jsonl.gz"), key=lambda path: path.name.lower())
    vocabulary = _vocabulary(repositories, out.with_name("vocabulary.txt"))
    owner: dict[str, str] = {}
    documents: dict[tuple[int, str], int] = {}
    places: dict[tuple[int, str, str], int] = {}
    queries, tokens, place_of, rows = [], [], [], []
    for number, path in enumerate(repositories):
        for row in sorted(_rows(path), key=lambda row: (row["u"][0][0], row["u"][0][1])):
            # A message that several repositories have, such as that of a fork, counts once.
            if owner.setdefault(row["q"].lower(), path.name) != path.name:
                continue
            units = []
            for file, name, text in row["u"]:
                key = number, hashlib.sha1("".join(text.split()).encode()).hexdigest()
                if key not in documents:
                    documents[key] = len(tokens)
                    tokens.append(vocabulary.document(file, name, text))
                    place_of.append(places.setdefault((number, file, name), len(places)))
                units.append(documents[key])
            queries.append(vocabulary.query(row["q"]))
            rows.append((number, units))
    arrays = {
        "queries": np.array([token for query in queries for token in query], np.uint16),
        "query_lengths": np.array([len(query) for query in queries], np.uint8),
        "documents": np.array([token for document in tokens for token in document], np.uint16),
        "document_lengths": np.array([len(document) for document in tokens], np.uint8),
        "places": np.array(place_of, np.int32),
        "repository": np.array([number for number, _ in rows], np.int16),
        "units": np.array([len(units) for _, units in rows], np.uint8),
        "unit": np.array([unit for _, units in rows for unit in units], np.int32),
        "names": np.array([path.name.removesuffix(".jsonl.gz") for path in repositories]),
    }
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    out.write_bytes(lzma.compress(buffer.getvalue(), preset=4))
    print(f"{len(repositories)} repositories, {len(rows)} pairs, {len(tokens)} functions, {out.stat().st_size / 1e6:.1f} MB")  # fmt: skip


# Data


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """The arrays that `pack_pairs` wrote."""

    arrays: Mapping[str, npt.NDArray[Any]]

    @classmethod
    def load(cls, path: Path) -> Data:
        """Load a pack."""
        with np.load(io.BytesIO(lzma.decompress(path.read_bytes()))) as stored:
            return cls({name: stored[name] for name in stored.files})

    def starts(self, lengths: str) -> Ints:
        """Where each sequence begins, from the array of their lengths."""
        ends = np.cumsum(self.arrays[lengths].astype(np.int64))
        return ends - self.arrays[lengths]

    def held_out(self) -> set[int]:
        """Repositories for validation, drawn among those with at least 300 pairs."""
        sizes = np.bincount(self.arrays["repository"], minlength=len(self.arrays["names"]))
        able = np.flatnonzero(sizes >= 300)
        most = min(VALIDATED, max(1, len(able) // 3))
        return set(np.random.default_rng(SEED).permutation(able)[:most].tolist())


def batches(data: Data, held: set[int], size: int, groups: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield the pairs of each step: numbers of queries, and a changed function for each."""
    draw = np.random.default_rng()
    repository = data.arrays["repository"]
    pairs = {n: np.flatnonzero(repository == n) for n in range(len(data.arrays["names"])) if n not in held}  # fmt: skip
    pairs = {n: rows for n, rows in pairs.items() if len(rows) >= 100}
    numbers = list(pairs)
    weights = np.array([len(pairs[n]) for n in numbers]) ** 0.8
    weights /= weights.sum()
    share = size // groups
    first, count, unit = data.starts("units"), data.arrays["units"], data.arrays["unit"]
    while True:
        chosen = []
        for n in draw.choice(numbers, min(groups, len(numbers)), replace=False, p=weights):
            own = pairs[n]
            begins = draw.integers(0, max(1, len(own) - 32), max(1, share // 64))
            near = [own[begin : begin + 32] for begin in begins]
            others = draw.choice(own, min(share, len(own)), replace=False)
            chosen.append(draw.permutation(np.unique(np.concatenate([*near, others])))[:share])
        queries = np.concatenate(chosen)
        offsets = (draw.random(len(queries)) * count[queries]).astype(np.int64)
        yield queries, unit[first[queries] + offsets].astype(np.int64)


class Sequences:
    """Token sequences on the device of the training.

    Args:
        data: the pack.
        name: ``queries`` or ``documents``.
        lengths: name of the array of their lengths.
    """

    def __init__(self, data: Data, name: str, lengths: str, device: torch.device) -> None:
        self.flat = torch.from_numpy(data.arrays[name].astype(np.int32)).to(device)
        self.begin = torch.from_numpy(data.starts(lengths)).to(device)
        self.length = torch.from_numpy(data.arrays[lengths].astype(np.int64)).to(device)

    def __getitem__(self, rows: Tensor) -> Tensor:
        """The tokens of sequences, shape (rows, longest), padded."""
        steps = torch.arange(int(self.length[rows].max()), device=rows.device)
        inside = steps < self.length[rows][:, None]
        where = (self.begin[rows][:, None] + steps).clamp(max=len(self.flat) - 1)
        return self.flat[where].long() * inside


# Network


class Block(nn.Module):
    """A layer of a transformer, with normalization first."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.norm1, self.norm2 = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))
        self.qkv = nn.Parameter(torch.randn(width, 3 * width) * width**-0.5)
        self.out = nn.Parameter(torch.randn(width, width) * 0.3 * width**-0.5)
        self.up = nn.Parameter(torch.randn(width, 4 * width) * width**-0.5)
        self.down = nn.Parameter(torch.randn(4 * width, width) * 0.15 * width**-0.5)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Map (rows, length, width) to the same shape."""
        rows, length, width = x.shape
        h = functional.rms_norm(x, (width,), self.norm1, 1e-6) @ self.qkv
        q, k, v = h.view(rows, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        h = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        h = h.transpose(1, 2).reshape(rows, length, width) @ self.out
        x = x + functional.dropout(h, self.dropout, self.training)
        h = functional.rms_norm(x, (width,), self.norm2, 1e-6) @ self.up
        return x + functional.dropout(functional.relu(h).square() @ self.down, self.dropout, self.training)  # fmt: skip


class Encoder(nn.Module):
    """Tokens to a vector of length 1, by blocks and weighted pooling."""

    def __init__(self, length: int, layers: int, options: argparse.Namespace) -> None:
        super().__init__()
        width = options.width
        self.dropout = options.dropout
        self.position = nn.Parameter(torch.randn(length, width) * 0.05)
        self.blocks = nn.ModuleList(Block(width, options.dropout) for _ in range(layers))
        self.norm = nn.Parameter(torch.ones(width))
        self.pool = nn.Parameter(torch.zeros(width))
        self.project = nn.Parameter(torch.randn(width, options.dimensions) * width**-0.5)

    def forward(self, embedding: Tensor, tokens: Tensor) -> Tensor:
        """Map (rows, length) to (rows, dimensions)."""
        mask = tokens != PADDING
        mask[:, 0] = True
        x = functional.dropout(embedding[tokens], self.dropout, self.training)
        if len(self.blocks):
            # Messages are shorter than reports: a random start trains all positions.
            free = len(self.position) - tokens.shape[1] if self.training else 0
            begin = int(torch.randint(free + 1, ())) if free > 0 else 0
            x = x + self.position[begin : begin + tokens.shape[1]]
        for block in self.blocks:
            x = block(x, mask)
        x = functional.rms_norm(x, (x.shape[-1],), self.norm, 1e-6)
        share = (x @ self.pool).float().masked_fill(~mask, -1e9).softmax(1)
        pooled = (share[..., None] * x).sum(1) @ self.project
        return functional.normalize(pooled.float(), dim=1, eps=1e-6)


class Reader(nn.Module):
    """An encoder of reports and one of functions, with shared embeddings."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(VOCABULARY, options.width) * 0.2)
        self.query = Encoder(QUERY_TOKENS, options.query_layers, options)
        self.document = Encoder(DOCUMENT_TOKENS, options.document_layers, options)
        self.scale = nn.Parameter(torch.tensor(math.log(20.0)))

    def loss(self, queries: Tensor, documents: Tensor, places: Tensor) -> Tensor:
        """InfoNCE in both directions; versions of the same function are not negatives."""
        scores = self.query(self.embedding, queries) @ self.document(self.embedding, documents).T
        same = places[:, None] == places[None, :]
        same.fill_diagonal_(False)
        scores = (scores * self.scale.exp().clamp(max=100)).masked_fill(same, -1e4)
        target = torch.arange(len(scores), device=scores.device)
        return 0.5 * (functional.cross_entropy(scores, target) + functional.cross_entropy(scores.T, target))  # fmt: skip


def _thinned(queries: Tensor, documents: Tensor) -> Tensor:
    """Hide words of queries; for three in ten, half of the words that their function contains too.

    The ranking counts common words already, so the network has to learn what they do not show.
    """
    hidden = torch.rand(queries.shape, device=queries.device) < 0.1
    chosen = torch.rand(len(queries), 1, device=queries.device) < 0.3
    for rows in torch.arange(len(queries), device=queries.device).split(256):
        common = (queries[rows][:, :, None] == documents[rows][:, None, :]).any(2)
        half = torch.rand(common.shape, device=queries.device) < 0.5
        hidden[rows] |= common & chosen[rows] & half
    return queries.masked_fill(hidden, PADDING)


# Training


def train(options: argparse.Namespace) -> None:
    """Train until the time is used up, resuming from a checkpoint, and store the weights."""
    torch.manual_seed(SEED)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_float32_matmul_precision("high")
    data = Data.load(options.pack)
    options.out.mkdir(parents=True, exist_ok=True)
    reader = Reader(options).to(device)
    optimizer = _optimizer(reader, options.rate, device)
    checkpoint = options.out / "checkpoint.pt"
    spent, step = _resumed(checkpoint, reader, optimizer, device)
    queries = Sequences(data, "queries", "query_lengths", device)
    documents = Sequences(data, "documents", "document_lengths", device)
    places = torch.from_numpy(data.arrays["places"]).to(device)
    held = data.held_out()
    names = [str(data.arrays["names"][n]) for n in sorted(held)]
    print(f"validated on {', '.join(names) or 'nothing'}; step {step}", flush=True)
    source = batches(data, held, options.batch, options.groups)
    started = saved = time.perf_counter() - spent
    losses: list[Tensor] = []
    while (now := time.perf_counter()) - started < options.seconds:
        decay = 0.5 * (1 + math.cos(math.pi * (now - started) / options.seconds))
        for group in optimizer.param_groups:
            group["lr"] = options.rate * min(1.0, (step + 1) / 100) * decay
        query_rows, unit_rows = (torch.from_numpy(rows).to(device) for rows in next(source))
        functions = documents[unit_rows]
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            loss = reader.loss(_thinned(queries[query_rows], functions), functions, places[unit_rows])  # fmt: skip
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        optimizer.step()
        step += 1
        losses.append(loss.detach())
        if now - saved > options.save_every:
            saved = now
            quality = validated(reader, data, held, queries, documents)
            print(f"{now - started:.0f} s, step {step}, loss {float(torch.stack(losses).mean()):.4f}, {quality}", flush=True)  # fmt: skip
            losses.clear()
            state = {"reader": reader.state_dict(), "optimizer": optimizer.state_dict()}
            partial = checkpoint.with_suffix(".partial")
            torch.save(state | {"spent": now - started, "step": step}, partial)
            partial.replace(checkpoint)
    print(f"{step} steps, {validated(reader, data, held, queries, documents)}", flush=True)
    np.savez(options.out / "weights.npz", **quantized(reader))
    checkpoint.unlink(missing_ok=True)


def _optimizer(reader: Reader, rate: float, device: torch.device) -> torch.optim.Optimizer:
    decayed, others = [], []
    for name, value in reader.named_parameters():
        (decayed if value.ndim == 2 and "embedding" not in name else others).append(value)
    groups = [{"params": decayed, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), fused=device.type == "cuda")


def _resumed(
    checkpoint: Path, reader: Reader, optimizer: torch.optim.Optimizer, device: torch.device
) -> tuple[float, int]:
    """Load a checkpoint if it exists; return the seconds and steps of the training so far."""
    if not checkpoint.exists():
        return 0.0, 0
    stored = torch.load(checkpoint, map_location=device, weights_only=True)
    reader.load_state_dict(stored["reader"])
    optimizer.load_state_dict(stored["optimizer"])
    return stored["spent"], stored["step"]


@torch.no_grad()
def validated(
    reader: Reader, data: Data, held: set[int], queries: Sequences, documents: Sequences
) -> str:
    """The mean reciprocal rank of the changed function, and its share among the first ten."""
    reader.eval()
    device = reader.embedding.device

    def encoded(encoder: Encoder, rows: Ints, source: Sequences) -> Tensor:
        parts = torch.as_tensor(rows, device=device).split(256)
        return torch.cat([encoder(reader.embedding, source[part]) for part in parts])

    ranks = []
    first, count, unit = data.starts("units"), data.arrays["units"], data.arrays["unit"]
    for n in sorted(held):
        rows = np.flatnonzero(data.arrays["repository"] == n)
        units = np.unique(np.concatenate([unit[first[r] : first[r] + count[r]] for r in rows]))
        asked = np.random.default_rng(SEED).permutation(rows)[:300]
        scores = encoded(reader.query, asked, queries) @ encoded(reader.document, units, documents).T  # fmt: skip
        for row, own in zip(asked, scores.cpu().numpy(), strict=True):
            wanted = np.isin(units, unit[first[row] : first[row] + count[row]])
            ranks.append(1 + int((own > own[wanted].max()).sum()))
    reader.train()
    if not ranks:
        return "no repository has enough pairs for validation"
    found = np.array(ranks)
    return f"MRR {(1 / found).mean():.4f}, first 10 {(found <= 10).mean():.4f}"


def quantized(reader: Reader) -> dict[str, npt.NDArray[Any]]:
    """The weights in 8 bits: each row of the embeddings and each column of a matrix has its own scale."""
    found: dict[str, npt.NDArray[Any]] = {}
    for name, value in reader.state_dict().items():
        values = value.float().cpu().numpy()
        if values.ndim < 2:
            found[name] = values
            continue
        axis = 1 if name == "embedding" or name.endswith("position") else 0
        scale = np.abs(values).max(axis=axis, keepdims=True) / 127 + 1e-12
        found[name] = np.round(values / scale).astype(np.int8)
        found[f"{name}|scale"] = scale.astype(np.float32)
    return found


if __name__ == "__main__":
    main()
