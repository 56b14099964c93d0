"""Which file is what: its language, whether it is generated or binary, whether it is a test.

What the path alone tells is asked first, since it needs no reading; `refined` settles with the first
bytes what the path leaves open.
"""

from __future__ import annotations

import re

HEAD_BYTES = 8000
"""So many first bytes decide; git looks for a NUL byte in as many."""

LANGUAGES = frozenset(
    {"python", "c", "cpp", "cuda", "java", "go", "javascript", "typescript", "tsx"}
)
"""Those that have a grammar; ``tsx`` is TypeScript with markup."""

_EXTENSIONS = {
    "python": "py pyi pyw",
    "c": "c",
    "header": "h",
    "cpp": "cc cpp cxx c++ hh hpp hxx h++ inl ipp tcc tpp",
    "cuda": "cu cuh hip",
    "java": "java",
    "go": "go",
    "javascript": "js jsx mjs cjs",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "binary": (
        "7z a avi bin bmp bz2 caffemodel ckpt class dll dylib egg eot exe gif gz h5 hdf5 icns ico "
        "jar jpeg jpg lib mat mo mov mp3 mp4 msgpack npy npz o obj onnx otf parquet pb pdf pickle "
        "pkl png pt pth pyc pyd rar rec safetensors so tar tflite tgz tif tiff ttf wav webm webp "
        "whl woff woff2 xz zip zst"
    ),
}
_BY_EXTENSION = {
    extension: language for language, listed in _EXTENSIONS.items() for extension in listed.split()
}

_GENERATED_NAME = re.compile(
    r"(?:_pb2(?:_grpc)?\.pyi?|\.pb\.(?:go|cc|h|cpp)|_pb\.(?:js|ts)|\.pb\.validate\.go"
    r"|_generated\.(?:h|py|go|ts)|[.-]min\.(?:js|css|mjs)|\.bundle\.js|\.map"
    r"|^(?:package-lock\.json|yarn\.lock|pnpm-lock\.yaml|poetry\.lock|pipfile\.lock|uv\.lock"
    r"|pdm\.lock|cargo\.lock|gemfile\.lock|composer\.lock|go\.sum|npm-shrinkwrap\.json))$"
)
_GENERATED_HEAD = re.compile(
    rb"(?im)^[ \t]*(?:#|//|/?\*+|<!--|--|;|%)[^\n]{0,80}?"
    rb"(?:@generated\b|\bdo not (?:edit|modify)\b"
    rb"|\b(?:is|was|been) auto(?:matically|-)? ?generated\b"
    rb"|(?:file|code|module|header|is|was|been) generated (?:by|from|with|using)\b)"
    rb"|^\W+(?:auto(?:matically|-)? ?generated\b(?! file)|generated (?:by|from|with|using)\b)"
)
_GENERATED_BYTES = 1000
_MINIFIED = frozenset({"javascript", "typescript", "tsx"})
_MINIFIED_LINE = 400
"""Mean bytes a line above which nobody has written a script by hand."""
_CPP = re.compile(rb"(?m)^\s*(?:class|namespace|template|using)\b|::|\b(?:public|private)\s*:")
_SHEBANG = re.compile(rb"#![^\n]*\b(?:(python)|(node))")


def language_of(path: str) -> str:
    """The language that a path tells.

    Returns:
        One of `LANGUAGES`; ``text`` or ``binary``; ``generated`` for the outputs of other
        programs; ``header`` for C or C++ and ``script`` for a file without extension, which
        only their bytes decide.

    >>> language_of("src/op/conv.cu"), language_of("include/api.h"), language_of("web/yarn.lock")
    ('cuda', 'header', 'generated')
    """
    name = path.rpartition("/")[2].lower()
    if _GENERATED_NAME.search(name):
        return "generated"
    stem, dot, extension = name.rpartition(".")
    if not dot or not stem:
        return "script"
    return _BY_EXTENSION.get(extension, "text")


def refined(language: str, data: bytes) -> str:
    """The language of a file, its path's answer being ``language``, by its first bytes.

    Returns:
        One of `LANGUAGES`, or ``text``, ``binary``, ``generated``.
    """
    head = data[:HEAD_BYTES]
    if language == "binary" or b"\0" in head:
        return "binary"
    if language == "header":
        language = "cpp" if _CPP.search(data) else "c"
    elif language == "script":
        found = _SHEBANG.match(head)
        language = "text" if not found else "python" if found[1] else "javascript"
    elif language == "typescript" and head.startswith(b"<"):
        language = "text"  # the same extension is Qt's for translations
    if language in LANGUAGES and _GENERATED_HEAD.search(head[:_GENERATED_BYTES]):
        return "generated"
    if language in _MINIFIED and len(head) > _MINIFIED_LINE * (head.count(b"\n") + 1):
        return "generated"
    return language


_TEST_FOLDERS = frozenset({"test", "tests", "testing", "__tests__", "unittest", "unittests"})
_TEST_NAME = re.compile(
    r"^(?:test_.*|.*_test\.\w+|conftest\.py|.*_tests?\.\w+|.*_unittest\.\w+"
    r"|.*[.-](?:test|spec)\.\w+)$"
)
_TEST_CAMEL = re.compile(
    r"(?:^Test[A-Z]\w*|[a-z0-9](?:Tests?|TestCase|IT|Spec))\.(?:java|cc|cpp|cu|kt)$"
)


def is_test(path: str) -> bool:
    """Whether a path is that of a test, by the conventions of the languages read here.

    >>> is_test("tests/helper.py"), is_test("pkg/loader_test.go"), is_test("src/latest.py")
    (True, True, False)
    """
    *folders, name = path.split("/")
    if not _TEST_FOLDERS.isdisjoint(folder.lower() for folder in folders):
        return True
    return bool(_TEST_NAME.match(name.lower()) or _TEST_CAMEL.search(name))


_VENDORED_FOLDERS = frozenset({"_static", "bower_components", "node_modules", "vendor", "vendors"})
_VENDORED = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".go")


def is_vendored(path: str) -> bool:
    """Whether a path is that of another project's code: a script of the web, such as jQuery in the folder
    that Sphinx publishes as it is, or a Go package that ``go mod vendor`` copied.

    >>> is_vendored("docs/_static/jquery.js"), is_vendored("vendor/a.io/b/c.go"), is_vendored("web/app.js")
    (True, True, False)
    """
    *folders, name = path.lower().split("/")
    return name.endswith(_VENDORED) and not _VENDORED_FOLDERS.isdisjoint(folders)
