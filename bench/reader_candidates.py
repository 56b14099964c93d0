"""What the reader scores of the benchmark's bugs: their reports, and the functions of likely files.

``bench/localization.py`` must have computed its features, whose first guess chooses the files. The
tokens go to one file that ``train_reader.py train --score`` takes; the scores that it writes are
joined with the features by ``reader_ablation.py``.

    python bench/reader_candidates.py --repos DIR --vocabulary FILE --pack FILE
"""

from __future__ import annotations

import argparse
import io
import lzma
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from learning_to_rank import Example
from localization import options_of
from localization_measure import FORMAT, keep
from reader_text import VIEWS, Candidates, Tokens, Vocabulary, pieces_of, views_of

from epochzero.code import Cache, Repository, parse_snapshot
from epochzero.locate.corpus import searched
from epochzero.locate.query import query_of
from epochzero.study.localization.bugs import PYTHON, Bug, bugs_of, by_project, clones

FILES = 60
"""The likeliest files of a bug, whose functions are read."""


def main() -> None:
    """Collects the tokens of all projects whose features are stored."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabulary", type=Path, required=True)
    parser.add_argument("--pack", type=Path, required=True, help="file to write")
    options = options_of(parser)
    vocabulary = Vocabulary(options.vocabulary.read_text("utf-8").split())
    found = clones(options.repos)
    parts = {}
    for project, bugs in sorted(by_project(bugs_of(options.data.records)).items()):
        features = options.kept / f"{project}.{options.tree}.features.{FORMAT}.pickle"
        target = options.kept / f"{project}.{options.tree}.reader.pickle"
        if project.lower() not in found or not features.exists():
            continue
        if not target.exists():
            examples = {
                m.example.bug: m.example for m in pickle.loads(features.read_bytes()).measured
            }
            chosen = [(bug, examples[bug.report.id]) for bug in bugs if bug.report.id in examples]
            cache = Cache(options.work / "cache" / project)
            keep(target, _candidates(Repository(found[project.lower()]), chosen, cache, vocabulary))
        parts[project] = pickle.loads(target.read_bytes())
        print(f"{project}: {len(parts[project].documents)}", file=sys.stderr, flush=True)
    documents = [tokens for part in parts.values() for tokens in part.documents]
    firsts = np.cumsum([0, *(len(part.documents) for part in parts.values())])
    queries = [q for part in parts.values() for views in part.queries.values() for q in views]
    wanted = [
        [first + document for _, _, numbers in files for document in numbers]
        for first, part in zip(firsts, parts.values(), strict=False)
        for files in part.files.values()
    ]
    arrays = {
        "queries": np.array([t for q in queries for t in q], np.uint16),
        "query_lengths": np.array([len(q) for q in queries], np.uint8),
        "documents": np.array([t for d in documents for t in d], np.uint16),
        "document_lengths": np.array([len(d) for d in documents], np.uint8),
        "units": np.array(list(map(len, wanted)), np.int32),
        "unit": np.array([document for own in wanted for document in own], np.int32),
    }
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    options.pack.write_bytes(lzma.compress(buffer.getvalue(), preset=2))
    print(
        f"{len(wanted)} bugs, {len(VIEWS)} views, {len(documents)} functions, "
        f"{len(arrays['unit'])} scores, {options.pack.stat().st_size / 1e6:.1f} MB"
    )


def stored_files(
    folder: Path, tree: str
) -> dict[str, tuple[Sequence[tuple[int, list[int], list[int]]], None]]:
    """The files of each bug that were read, in the order of the scores."""
    return {
        bug: (files, None)
        for path in sorted(folder.glob(f"*.{tree}.reader.pickle"))
        for bug, files in pickle.loads(path.read_bytes()).files.items()
    }


def _candidates(
    repository: Repository,
    chosen: Sequence[tuple[Bug, Example]],
    cache: Cache,
    vocabulary: Vocabulary,
) -> Candidates:
    found = Candidates()
    known: dict[Tokens, int] = {}
    pieces: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
    for bug, example in chosen:
        before = bug.parent or repository.resolve(bug.fix).parents[0]
        snapshot = repository.snapshot(before)
        searchable = searched(snapshot, languages=PYTHON)
        guess = example.table[:, example.names.index("guess")]
        if len(searchable) != len(guess):
            raise ValueError(f"{bug.report.id}: the stored features are of other files")
        numbers = sorted(np.argsort(-guess, kind="stable")[:FILES].tolist())
        files = [searchable[n] for n in numbers]
        new = {file.path: file for file in files if (file.path, file.blob) not in pieces}
        parsed = dict(zip(new, parse_snapshot(snapshot, [*new.values()], cache, 1), strict=True))
        for file, content in snapshot.read(new.values()):
            lines = content.decode("utf-8", "replace").split("\n")
            own = list(pieces_of(parsed[file.path], lines))
            documents = []
            for piece in own:
                tokens = tuple(vocabulary.document(file.path, piece.name, piece.text))
                if tokens not in known:
                    known[tokens] = len(found.documents)
                    found.documents.append(tokens)
                documents.append(known[tokens])
            pieces[file.path, file.blob] = [piece.unit for piece in own], documents
        found.files[bug.report.id] = [
            (n, *pieces.get((file.path, file.blob), ([], [])))
            for n, file in zip(numbers, files, strict=True)
        ]
        views = views_of(query_of(bug.report))
        found.queries[bug.report.id] = [vocabulary.query(texts) for texts in views]
    return found


if __name__ == "__main__":
    main()
