"""The API of libraries as text: a block per module, a line per name, compressed.

The public names of torch, numpy and scikit-learn are 150,000 lines with many repetitions (each class repeats the members of its
bases); compression with a long window reduces them to a few hundred kilobytes. A module is parsed on first use, since a job
uses few of them.
"""

from __future__ import annotations

import base64
import re
import textwrap
from collections.abc import Iterator, Mapping

from epochzero import zstd
from epochzero.check.target.model import CallSignature
from epochzero.check.target.signature import Signatures, text_of

LARGEST_API_BYTES = 256 << 20
_LEVEL = 12
_LINE = 100
_NAME = r"(?:\*|[^\W\d]\w*(?:\.(?:\*|[^\W\d]\w*))?)"
_BLOCK = re.compile(rf"[^\W\d][\w.]*\n(?:{_NAME}(?:\t[\w*/=., ]*)?\n)*")

Api = Mapping[str, Mapping[str, CallSignature | None]]


class _Lazy(Mapping[str, Mapping[str, CallSignature | None]]):
    """Modules whose names are parsed on first use."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._read: dict[str, Mapping[str, CallSignature | None]] = {}

    def __getitem__(self, module: str) -> Mapping[str, CallSignature | None]:
        if module not in self._read:
            self._read[module] = _names(self._texts[module])
        return self._read[module]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        return f"<API of {len(self)} modules>"


def _names(text: str) -> Signatures:
    names: dict[str, str | None] = {}
    for line in text.splitlines()[1:]:
        name, tab, parameters = line.partition("\t")
        names[name] = parameters if tab else None
    return Signatures(names)


def _line(name: str, signature: CallSignature | None) -> str:
    return f"{name}\n" if signature is None else f"{name}\t{text_of(signature)}\n"


def packed(api: Api) -> str:
    """The API, compressed, in lines of ASCII characters without quotes and backslashes."""
    blocks = (
        module + "\n" + "".join(_line(name, api_text) for name, api_text in names.items())
        for module, names in api.items()
    )
    data = "\n".join(blocks).encode()
    done = zstd.compress_far(data, _LEVEL, window_log=25)
    return "\n".join(textwrap.wrap(base64.b85encode(done).decode(), _LINE, break_on_hyphens=False))


def unpacked(text: str) -> Api:
    """Parse a text that `packed` created.

    Raises:
        ValueError: the text is damaged.
    """
    try:
        data = base64.b85decode("".join(text.split()))
        size = zstd.get_frame_info(data).decompressed_size
        if size is None or size > LARGEST_API_BYTES:
            raise ValueError(f"its size is {size} bytes; at most {LARGEST_API_BYTES} are allowed")
        decompressor = zstd.ZstdDecompressor()
        api_text = decompressor.decompress(data, LARGEST_API_BYTES).decode()
        if not decompressor.eof:
            raise ValueError("it is truncated")
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from error
    texts: dict[str, str] = {}
    for block in api_text.split("\n\n"):
        whole = block if block.endswith("\n") else f"{block}\n"
        if _BLOCK.fullmatch(whole) is None:
            raise ValueError(
                f"{block[:60]!r} must be a module name followed by the names in the module"
            )
        texts[whole.split("\n", 1)[0]] = whole
    return _Lazy(texts)
