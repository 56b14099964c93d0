"""Trains the reader, a network that finds the function a report is about, on pairs that ``reader_data.py`` mined.

Two encoders learn by contrast (InfoNCE, van den Oord et al., 2018): of all functions in the batch the
changed one must be nearest to the message of its change. A batch holds a few repositories, and of
each many functions, half of them neighbours in the same files: these are the hard negatives, since
the task is to tell functions of one repository apart.

    python bench/train_reader.py pack --mined DIR --out reader.pack.xz     # tokens, once
    python bench/train_reader.py train --pack reader.pack.xz --out DIR --seconds 240
    python bench/train_reader.py train ... --width 256 --query-layers 0 --document-layers 0

The same script runs on a CPU and on a GPU; without layers it trains a bag of embeddings. Training
takes ``--seconds``; a checkpoint is written every ``--save-every`` seconds, and a run with the same
``--out`` resumes from it. Repositories named in ``--validate`` are only measured on.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import lzma
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

SEED = 20_200_627
QUERY_TOKENS, DOCUMENT_TOKENS, HEADS, PADDING = 96, 160, 4, 0
"""As in ``reader_text.py``, which is not needed where this trains."""
VOCABULARY = 16_384
VALIDATED = 6
"""Repositories that are held out of the training, for its validation."""

Ints = npt.NDArray[np.int64]


def main() -> None:
    """Packs pairs or trains."""
    parser = argparse.ArgumentParser(description=__doc__)
    actions = parser.add_subparsers(required=True, dest="action")
    pack = actions.add_parser("pack", help="Write the tokens of mined pairs to one file.")
    pack.add_argument("--mined", type=Path, required=True, help="directory of mined pairs")
    pack.add_argument(
        "--out", type=Path, required=True, help="file to write; vocabulary next to it"
    )
    pack.add_argument(
        "--exclude", type=Path, help="pack of functions to leave out (reader_candidates.py)"
    )
    train = actions.add_parser("train", help="Train the network, and encode what --score names.")
    train.add_argument("--pack", type=Path, required=True)
    train.add_argument(
        "--out", type=Path, required=True, help="directory for checkpoints and weights"
    )
    train.add_argument(
        "--score", type=Path, help="reports and functions to score after the training"
    )
    train.add_argument("--seconds", type=float, default=240.0, help="duration of the training")
    train.add_argument("--save-every", type=float, default=60.0)
    train.add_argument("--width", type=int, default=256)
    train.add_argument("--dimensions", type=int, default=128, help="length of the vectors")
    train.add_argument("--query-layers", type=int, default=6)
    train.add_argument("--document-layers", type=int, default=3)
    train.add_argument("--batch", type=int, default=2048, help="pairs in a batch")
    train.add_argument("--groups", type=int, default=8, help="repositories in a batch")
    train.add_argument("--rate", type=float, default=1e-3, help="largest learning rate")
    train.add_argument("--dropout", type=float, default=0.1)
    options = parser.parse_args()
    if options.action == "pack":
        packed(options.mined, options.out, options.exclude)
    else:
        trained(options)


# Packing


def packed(mined: Path, out: Path, exclude: Path | None) -> None:
    """Writes all pairs as tokens: repositories in the order of their names, units by place."""
    import hashlib

    from reader_text import Vocabulary

    refused = _bodies(Data.load(exclude)) if exclude else set()

    def digest(text: str) -> str:
        return hashlib.sha1("".join(text.split()).encode()).hexdigest()[:16]

    repositories = sorted(mined.glob("*.jsonl.gz"), key=lambda path: path.name.lower())
    pieces = _vocabulary(repositories, out.with_name("vocabulary.txt"))
    vocabulary = Vocabulary(pieces)
    known: dict[str, str] = {}
    queries: list[list[int]] = []
    documents: dict[str, int] = {}
    tokens: list[list[int]] = []
    places: list[int] = []
    rows: list[tuple[int, list[int]]] = []
    place_numbers: dict[tuple[int, str, str], int] = {}
    lost: Counter[str] = Counter()
    for number, path in enumerate(repositories):
        pairs = sorted(_rows(path), key=lambda row: (row["u"][0][0], row["u"][0][1]))
        for row in pairs:
            if known.setdefault(row["q"].lower(), path.name) != path.name:
                lost["known from another repository"] += 1
                continue
            own_units = []
            for file, name, text in row["u"]:
                key = f"{number} {digest(text)}"
                if key not in documents:
                    read = vocabulary.document(file, name, text)
                    if _body(read) in refused:
                        lost["functions of an evaluated project"] += 1
                        continue
                    documents[key] = len(tokens)
                    tokens.append(read)
                    places.append(
                        place_numbers.setdefault((number, file, name), len(place_numbers))
                    )
                own_units.append(documents[key])
            if not own_units:
                continue
            title, _, rest = row["q"].partition("\n")
            queries.append(vocabulary.query([title, rest]))
            rows.append((number, own_units))
    arrays = {
        "queries": np.array([t for q in queries for t in q], np.uint16),
        "query_lengths": np.array([len(q) for q in queries], np.uint8),
        "documents": np.array([t for d in tokens for t in d], np.uint16),
        "document_lengths": np.array([len(d) for d in tokens], np.uint8),
        "places": np.array(places, np.int32),
        "repository": np.array([row[0] for row in rows], np.int16),
        "units": np.array([len(row[1]) for row in rows], np.uint8),
        "unit": np.array([u for row in rows for u in row[1]], np.int32),
        "names": np.array([path.name.removesuffix(".jsonl.gz") for path in repositories]),
    }
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    out.write_bytes(lzma.compress(buffer.getvalue(), preset=4))
    print(
        f"{len(repositories)} repositories, {len(rows)} pairs, {len(tokens)} functions, "
        f"{len(arrays['queries'])} + {len(arrays['documents'])} tokens, lost {dict(lost)}, "
        f"{out.stat().st_size / 1e6:.1f} MB"
    )


SHORTEST_BODY = 16
"""Tokens; shorter functions of different projects are equal by chance."""


def _body(tokens: Sequence[int]) -> tuple[int, ...]:
    """The tokens of a function without its path and name; empty for a short one."""
    second = tokens.index(2, tokens.index(2) + 1)
    body = tuple(tokens[second + 1 :])
    return body if len(body) >= SHORTEST_BODY else ()


def _bodies(data: Data) -> set[tuple[int, ...]]:
    """The bodies of all functions of a pack."""
    tokens, starts = data.arrays["documents"].tolist(), data.starts("document_lengths").tolist()
    lengths = data.arrays["document_lengths"].tolist()
    found = {_body(tokens[s : s + n]) for s, n in zip(starts, lengths, strict=True)}
    return found - {()}


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def _vocabulary(repositories: Sequence[Path], path: Path) -> list[str]:
    """The pieces of words: those of the file, which is written if it does not exist."""
    from reader_text import word_counts

    if not path.exists():
        counts: Counter[str] = Counter()
        for repository in repositories:
            rows = list(_rows(repository))[::2]
            own = word_counts(text for row in rows for text in (row["q"], row["u"][0][2]))
            # A word that one repository repeats is no word of the field.
            counts.update({word: min(count, 1000) for word, count in own.items()})
        path.write_text("\n".join(_pieces(counts)) + "\n", encoding="utf-8")
    return path.read_text(encoding="utf-8").split()


def _pieces(counts: Counter[str]) -> list[str]:
    """The pieces of a vocabulary: frequent words, and frequent rests behind them."""
    single = [f"{mark}{c}" for mark in ("", "##") for c in "abcdefghijklmnopqrstuvwxyz0123456789"]
    room = VOCABULARY - 3 - len(single)
    chosen = [w for w, _ in counts.most_common(room * 5 // 6) if len(w) > 1]
    words = set(chosen)
    rests: Counter[str] = Counter()
    for word, count in counts.items():
        if word not in words:
            end = next((n for n in range(len(word) - 1, 1, -1) if word[:n] in words), 1)
            rests[f"##{word[end:]}"] += count
    rest = [r for r, _ in rests.most_common() if len(r) > 3][: room - len(chosen)]
    return [*single, *chosen, *rest]


# Data


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """What `packed` wrote."""

    arrays: Mapping[str, npt.NDArray[Any]]

    @classmethod
    def load(cls, path: Path) -> Data:
        with np.load(io.BytesIO(lzma.decompress(path.read_bytes()))) as stored:
            return cls({name: stored[name] for name in stored.files})

    def starts(self, name: str) -> Ints:
        """Where each sequence begins."""
        lengths = self.arrays[name].astype(np.int64)
        return np.concatenate([[0], np.cumsum(lengths)[:-1]]) if len(lengths) else lengths


def batches(data: Data, held: set[int], options: argparse.Namespace) -> Iterator[tuple[Ints, Ints]]:
    """Pairs for each step: numbers of queries, and of each a function that it asks for."""
    draw = np.random.default_rng()
    repository = data.arrays["repository"]
    numbers = [n for n in range(len(data.arrays["names"])) if n not in held]
    pairs = {n: np.flatnonzero(repository == n) for n in numbers}
    pairs = {n: rows for n, rows in pairs.items() if len(rows) >= 100}
    numbers = list(pairs)
    weights = np.array([len(pairs[n]) for n in numbers]) ** 0.8
    weights /= weights.sum()
    size = options.batch // options.groups
    first, count, unit = data.starts("units"), data.arrays["units"], data.arrays["unit"]
    while True:
        chosen = []
        for n in draw.choice(numbers, min(options.groups, len(numbers)), replace=False, p=weights):
            own = pairs[n]
            near = []
            for _ in range(max(1, size // 64)):
                begin = draw.integers(0, max(1, len(own) - 32))
                near.append(own[begin : begin + 32])
            others = draw.choice(own, min(size, len(own)), replace=False)
            chosen.append(np.unique(np.concatenate([*near, others])))
            chosen[-1] = draw.permutation(chosen[-1])[:size]
        queries = np.concatenate(chosen)
        units = unit[first[queries] + (draw.random(len(queries)) * count[queries]).astype(np.int64)]
        yield queries, units.astype(np.int64)


# Training


def trained(options: argparse.Namespace) -> None:
    """Trains, validates, stores the weights, and encodes what is to be scored."""
    import torch
    import torch.nn.functional as F  # noqa: N812
    from torch import nn

    torch.manual_seed(SEED)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_float32_matmul_precision("high")
    start = time.perf_counter()
    data = Data.load(options.pack)
    options.out.mkdir(parents=True, exist_ok=True)

    class Block(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.norm1, self.norm2 = (
                nn.Parameter(torch.ones(width)),
                nn.Parameter(torch.ones(width)),
            )
            self.qkv = nn.Parameter(torch.randn(width, 3 * width) * width**-0.5)
            self.out = nn.Parameter(torch.randn(width, width) * 0.3 * width**-0.5)
            self.up = nn.Parameter(torch.randn(width, 4 * width) * width**-0.5)
            self.down = nn.Parameter(torch.randn(4 * width, width) * 0.15 * width**-0.5)

        def forward(self, x: Any, mask: Any, dropout: float) -> Any:
            rows, length, width = x.shape
            h = F.rms_norm(x, (width,), self.norm1, 1e-6) @ self.qkv
            q, k, v = h.view(rows, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
            h = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
            h = h.transpose(1, 2).reshape(rows, length, width) @ self.out
            x = x + F.dropout(h, dropout, self.training)
            h = F.relu(F.rms_norm(x, (width,), self.norm2, 1e-6) @ self.up).square() @ self.down
            return x + F.dropout(h, dropout, self.training)

    class Encoder(nn.Module):
        def __init__(self, length: int, layers: int) -> None:
            super().__init__()
            width = options.width
            self.position = nn.Parameter(torch.randn(length, width) * 0.05)
            self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
            self.norm = nn.Parameter(torch.ones(width))
            self.pool = nn.Parameter(torch.zeros(width))
            self.project = nn.Parameter(torch.randn(width, options.dimensions) * width**-0.5)

        def forward(self, embedding: Any, tokens: Any) -> Any:
            mask = tokens != PADDING
            mask[:, 0] = True
            x = F.dropout(embedding[tokens], options.dropout, self.training)
            if len(self.blocks):
                # Messages are shorter than reports: a random start trains all positions.
                free = len(self.position) - tokens.shape[1] if self.training else 0
                begin = int(torch.randint(free + 1, ())) if free > 0 else 0
                x = x + self.position[begin : begin + tokens.shape[1]]
            for block in self.blocks:
                x = block(x, mask, options.dropout)
            x = F.rms_norm(x, (x.shape[-1],), self.norm, 1e-6)
            share = (x @ self.pool).float().masked_fill(~mask, -1e9).softmax(1)
            pooled = (share[..., None] * x).sum(1) @ self.project
            return F.normalize(pooled.float(), dim=1, eps=1e-6)

    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Parameter(torch.randn(VOCABULARY, options.width) * 0.2)
            self.query = Encoder(QUERY_TOKENS, options.query_layers)
            self.document = Encoder(DOCUMENT_TOKENS, options.document_layers)
            self.scale = nn.Parameter(torch.tensor(math.log(20.0)))

    reader = Reader().to(device)
    matrices = [p for n, p in reader.named_parameters() if p.ndim == 2 and "embedding" not in n]
    others = [p for n, p in reader.named_parameters() if p.ndim < 2 or "embedding" in n]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}],
        lr=options.rate, betas=(0.9, 0.98), fused=device.type == "cuda",
    )  # fmt: skip
    parameters = sum(p.numel() for p in reader.parameters())
    print(
        f"{parameters / 1e6:.1f} M parameters on {device}; data {time.perf_counter() - start:.0f} s"
    )

    flat = {
        name: torch.from_numpy(data.arrays[name].astype(np.int32)).to(device)
        for name in ("queries", "documents")
    }
    begin = {
        "queries": torch.from_numpy(data.starts("query_lengths")).to(device),
        "documents": torch.from_numpy(data.starts("document_lengths")).to(device),
    }
    length = {
        "queries": torch.from_numpy(data.arrays["query_lengths"].astype(np.int64)).to(device),
        "documents": torch.from_numpy(data.arrays["document_lengths"].astype(np.int64)).to(device),
    }
    place = torch.from_numpy(data.arrays["places"]).to(device)

    def tokens(name: str, rows: Any) -> Any:
        longest = int(length[name][rows].max())
        steps = torch.arange(longest, device=device)
        inside = steps < length[name][rows][:, None]
        where = (begin[name][rows][:, None] + steps).clamp(max=len(flat[name]) - 1)
        return flat[name][where].long() * inside

    checkpoint = options.out / "checkpoint.pt"
    spent, step = 0.0, 0
    if checkpoint.exists():
        stored = torch.load(checkpoint, map_location=device, weights_only=True)
        reader.load_state_dict(stored["reader"])
        optimizer.load_state_dict(stored["optimizer"])
        spent, step = stored["spent"], stored["step"]
    held = _held(data)
    names = data.arrays["names"]
    print("validated on", ", ".join(str(names[n]) for n in sorted(held)), flush=True)

    def bfloat() -> Any:
        return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")

    def encoded(tower: str, rows: Sequence[int] | Ints, name: str) -> Any:
        encoder = getattr(reader, tower)
        rows = torch.as_tensor(np.asarray(rows), device=device)
        size = 2048 if device.type == "cuda" else 256
        with torch.no_grad(), bfloat():
            parts = [encoder(reader.embedding, tokens(name, part)) for part in rows.split(size)]
        return torch.cat(parts)

    def validated() -> str:
        reader.eval()
        reciprocal, among = [], []
        first, count = data.starts("units"), data.arrays["units"]
        for n in sorted(held):
            rows = np.flatnonzero(data.arrays["repository"] == n)
            units = np.unique(np.concatenate([
                data.arrays["unit"][first[r] : first[r] + count[r]] for r in rows
            ]))  # fmt: skip
            asked = np.random.default_rng(SEED).permutation(rows)[:300]
            scores = encoded("query", asked, "queries") @ encoded("document", units, "documents").T
            for row, own in zip(asked, scores.cpu().numpy(), strict=True):
                wanted = np.isin(units, data.arrays["unit"][first[row] : first[row] + count[row]])
                rank = 1 + int((own > own[wanted].max()).sum())
                reciprocal.append(1 / rank)
                among.append(rank <= 10)
        reader.train()
        return f"MRR {np.mean(reciprocal):.4f}, first 10 {np.mean(among):.4f}"

    def stored_at(path: Path) -> None:
        np.savez(path, **_weights(reader))

    source = batches(data, held, options)
    reader.train()
    started = last = time.perf_counter() - spent
    losses: list[Any] = []
    while (now := time.perf_counter()) - started < options.seconds:
        share = (now - started) / options.seconds
        rate = options.rate * min(1.0, (step + 1) / 100) * 0.5 * (1 + math.cos(math.pi * share))
        for group in optimizer.param_groups:
            group["lr"] = rate
        query_rows, unit_rows = (torch.from_numpy(rows).to(device) for rows in next(source))
        asked, told = tokens("queries", query_rows), tokens("documents", unit_rows)
        asked = _thinned(torch, asked, told)
        with bfloat():
            queries = reader.query(reader.embedding, asked)
            documents = reader.document(reader.embedding, told)
        scores = queries @ documents.T * reader.scale.exp().clamp(max=100)
        same = place[unit_rows][:, None] == place[unit_rows][None, :]
        same.fill_diagonal_(False)
        scores = scores.masked_fill(same, -1e4)
        target = torch.arange(len(scores), device=device)
        loss = 0.5 * (F.cross_entropy(scores, target) + F.cross_entropy(scores.T, target))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        optimizer.step()
        step += 1
        losses.append(loss.detach())
        if now - last > options.save_every:
            last = now
            mean = float(torch.stack(losses).mean())
            losses.clear()
            print(f"{now - started:.0f} s, step {step}, loss {mean:.4f}, {validated()}", flush=True)
            state = {"reader": reader.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(state | {"spent": now - started, "step": step}, checkpoint)
            stored_at(options.out / "weights.partial.npz")
    print(f"{step} steps, {validated()}", flush=True)
    stored_at(options.out / "weights.npz")
    (options.out / "weights.partial.npz").unlink(missing_ok=True)
    checkpoint.unlink(missing_ok=True)
    if options.score:
        reader.eval()
        data = Data.load(options.score)
        flat = {n: torch.from_numpy(data.arrays[n].astype(np.int32)).to(device) for n in flat}
        begin = {
            "queries": torch.from_numpy(data.starts("query_lengths")).to(device),
            "documents": torch.from_numpy(data.starts("document_lengths")).to(device),
        }
        length = {
            n: torch.from_numpy(data.arrays[f"{s}_lengths"].astype(np.int64)).to(device)
            for n, s in (("queries", "query"), ("documents", "document"))
        }
        vectors = encoded("document", np.arange(len(data.arrays["document_lengths"])), "documents")
        asked = encoded("query", np.arange(len(data.arrays["query_lengths"])), "queries")
        # Several views of each report are compared with the same functions.
        views = asked.view(len(data.arrays["units"]), -1, asked.shape[1])
        unit = torch.from_numpy(data.arrays["unit"].astype(np.int64)).to(device)
        of = np.repeat(np.arange(len(views)), data.arrays["units"].astype(np.int64))
        parts = [
            torch.einsum("nvd,nd->nv", views[q], vectors[u])
            for q, u in zip(
                torch.from_numpy(of).to(device).split(1 << 16), unit.split(1 << 16), strict=True
            )
        ]
        np.savez(options.out / "scores.npz", scores=torch.cat(parts).half().cpu().numpy())
    print(f"{time.perf_counter() - start:.0f} s in all", flush=True)


def _held(data: Data) -> set[int]:
    """Repositories for validation, drawn among those of at least 300 pairs."""
    sizes = np.bincount(data.arrays["repository"], minlength=len(data.arrays["names"]))
    able = np.flatnonzero(sizes >= 300)
    most = min(VALIDATED, max(1, len(able) // 3))
    return set(np.random.default_rng(SEED).permutation(able)[:most].tolist())


def _thinned(torch: Any, asked: Any, told: Any) -> Any:
    """Queries without some of their words.

    Of three in ten, half of the words that the function has too are hidden: other evidence of the
    ranking counts common words already, so the network has to learn what they do not tell.
    """
    hidden = torch.rand(asked.shape, device=asked.device) < 0.1
    chosen = torch.rand(len(asked), 1, device=asked.device) < 0.3
    for rows in torch.arange(len(asked), device=asked.device).split(256):
        common = (asked[rows][:, :, None] == told[rows][:, None, :]).any(2)
        hidden[rows] |= (
            common & chosen[rows] & (torch.rand(common.shape, device=asked.device) < 0.5)
        )
    return asked.masked_fill(hidden, PADDING)


def _weights(reader: Any) -> dict[str, npt.NDArray[Any]]:
    """The weights by their names, in 8 bits."""
    found = {}
    for name, value in reader.state_dict().items():
        if name != "scale":
            found[name.replace("blocks.", "")] = value.detach().float().cpu().numpy()
    return quantized(found)


def quantized(weights: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Weights in 8 bits: each row of the embeddings and each column of a matrix has its own scale."""
    found: dict[str, npt.NDArray[Any]] = {}
    for name, values in weights.items():
        if values.ndim < 2:
            found[name] = values.astype(np.float32)
            continue
        axis = 1 if name == "embedding" or name.endswith("position") else 0
        scale = np.abs(values).max(axis=axis, keepdims=True) / 127 + 1e-12
        found[name] = np.round(values / scale).astype(np.int8)
        found[f"{name}|scale"] = scale.astype(np.float32)
    return found


if __name__ == "__main__":
    main()
