"""Images, by pillow (extra ``data``): a file is a record and its folder the class.

Of most files only the header and the end are read, so that a million of them take minutes. One that
was cut off lacks its end; damage in the middle is seen by nothing but decoding, so that some of them
are decoded. Pillow discards the warnings of the JPEG decoder, which are all that most damage causes, so
that JPEG is decoded by simplejpeg, which raises them. Blocks that were never written are zeros, which the
decoder takes for a picture as often as not: they are looked for.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from epochzero.data.formats import Batch, Faults, Format, Measured, copy_file, file_batches, needed
from epochzero.data.model import DataTable

# How the files of a format end; those of others are not looked at.
ENDS = {"JPEG": b"\xff\xd9", "PNG": b"IEND", "GIF": b"\x3b"}
TAIL_BYTES = 4096
# A larger image is reduced before it is measured.
MEASURED_PIXELS = 256
# So many zeros in a row are no code of a picture.
HOLE_BYTES = 12
_HUFFMAN_TABLES, _START_OF_SCAN = b"\xff\xc4", b"\xff\xda"
SUFFIXES = {"JPEG": ".jpg", "PNG": ".png", "GIF": ".gif", "BMP": ".bmp", "TIFF": ".tif", "WEBP": ".webp"}  # fmt: skip


def _read(files: Sequence[Path], faults: Faults) -> Iterator[Batch]:
    return file_batches(files, faults, ("width", "height", "mode", "format"), _header)


def _header(
    file: Path, faults: Faults, measured: Measured | None
) -> tuple[int, int, str, str] | None:
    """Width, height, mode and format; of a broken file nothing. What is to be measured is decoded."""
    pillow = needed("PIL.Image", "reading images")
    try:
        if not file.stat().st_size:
            faults.add("empty_file", file)
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("error", pillow.DecompressionBombWarning)
            with pillow.open(file) as image:
                seen = (*image.size, image.mode, image.format)
                if measured is not None:
                    _decode(file, image, faults)
                    for name, number in _measures(image).items():
                        measured.setdefault(f"{name} of image", []).append(number)
    except (pillow.DecompressionBombWarning, pillow.DecompressionBombError) as error:
        faults.add("too_large", file, message=str(error))
        return None
    # The decoders raise almost anything for damaged files.
    except Exception as error:
        faults.add("broken", file, message=str(error).replace(str(file), file.name))
        return None
    if not _has_end(file, seen[3]):
        faults.add(
            "broken", file, message=f"the end of a {seen[3]} is missing: the file is truncated"
        )
        return None
    return seen


def _decode(file: Path, image: Any, faults: Faults) -> None:
    """Decodes an image; raises what Pillow raises, and notes damage that Pillow would pass over."""
    damage = ""
    if image.format == "JPEG" and image.mode in ("RGB", "L"):
        jpeg = needed("simplejpeg", "reading JPEG images")
        data = file.read_bytes()
        try:
            jpeg.decode_jpeg(data, strict=True)
        except ValueError as error:
            damage = str(error)
        else:
            if _has_hole(data):
                faults.add("damaged", file, message="zeros in the middle of the compressed data")
    image.load()
    if damage:
        faults.add("damaged", file, message=damage)


def _measures(image: Any) -> Mapping[str, float]:
    """What a person sees first, of an image of any mode and at most a few hundred pixels wide."""
    small = image.convert("RGB").reduce(max(1, max(image.size) // MEASURED_PIXELS))
    pixels = np.asarray(small, np.float64)
    grey = pixels.mean(axis=2)
    return {
        "brightness": float(grey.mean()),
        "contrast": float(grey.std()),
        "sharpness": float(np.abs(np.diff(grey, axis=1)).mean()) if grey.shape[1] > 1 else 0.0,
        "redness": float((pixels[..., 0] - pixels[..., 2]).mean()),
    }


def _has_hole(data: bytes) -> bool:
    """Whether zeros stand in the compressed data of a JPEG of one scan that no picture is encoded as.

    Zeros are the first code of each table. If that of AC coefficients stands for the end of a block, a flat
    picture is all zeros; else they are dozens of equal coefficients in one block.
    """
    at, flat = 2, True
    while (marker := data[at : at + 2]) != _START_OF_SCAN:
        if not marker.startswith(b"\xff") or marker == b"\xff\xff":
            return False
        segment = data[at + 4 : at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")]
        position = 0
        while marker == _HUFFMAN_TABLES and position < len(segment):
            of_ac, *counts = segment[position : position + 17]
            flat = flat and not (of_ac >> 4 and any(segment[position + 17 : position + 18]))
            position += 17 + sum(counts)
        at += 4 + len(segment)
    one_scan = data.count(_START_OF_SCAN, at) == 1
    return one_scan and not flat and bytes(HOLE_BYTES) in data[at : data.rfind(ENDS["JPEG"])]


def _has_end(file: Path, form: str) -> bool:
    with file.open("rb") as handle:
        handle.seek(max(0, file.stat().st_size - TAIL_BYTES))
        return ENDS.get(form, b"") in handle.read()


def _write(path: Path, table: DataTable, columns: Mapping[str, Sequence[Any]]) -> None:
    pillow = needed("PIL.Image", "writing images")
    noise = np.random.default_rng(len(next(iter(columns.values()), ())))
    known = table.column("format")
    forms = [name for name, _ in known.categories if name in SUFFIXES] if known else []
    for number, row in enumerate(zip(*columns.values(), strict=True)):
        given = dict(zip(columns, row, strict=True))
        folder = path / str(given.get("class") or "")
        folder.mkdir(parents=True, exist_ok=True)
        size = max(1, int(given["height"] or 1)), max(1, int(given["width"] or 1))
        grey = pillow.fromarray(noise.integers(0, 256, size, dtype=np.uint8))
        first = [given["format"]] if given["format"] in forms else []
        _save(
            grey.convert(given["mode"] or "RGB"), [*first, *forms, "PNG"], folder / f"{number:05}"
        )


def _save(image: Any, forms: Sequence[str], stem: Path) -> None:
    """Saves an image in the first format that has its mode: both were drawn apart."""
    for form in forms:
        try:
            image.save(stem.with_suffix(SUFFIXES[form]), format=form)
        except (OSError, KeyError):
            stem.with_suffix(SUFFIXES[form]).unlink(missing_ok=True)
        else:
            return
    image.convert("RGB").save(stem.with_suffix(".png"))


FORMAT = Format(
    "images",
    (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp"),
    _read,
    _write,
    copy_file,
    record_is_file=True,
)
