"""An index is outside its list, tuple or text."""

from __future__ import annotations

from epochzero.check.rules.base import (
    Case,
    Claims,
    Program,
    Rule,
    Target,
    claim_failure,
    failures,
)


def _check(program: Program, target: Target) -> Claims:
    for failed in failures(program, "index"):
        yield claim_failure(
            failed,
            message=f"The sequence has fewer items than the index needs: {failed.at.place.code}",
            fix="Provide the missing input, or check the length first.",
        )


RULE = Rule(
    title="An index is outside its list or text",
    category="illegal_index",
    why="Command-line arguments, fields of a line and entries of a configuration are read by "
    "index. If there are fewer, the job ends at that line.",
    fix="Provide the missing input, or check the length first.",
    source="Zhang et al., ICSE 2020, Table 1, Illegal Index",
    check=_check,
    catches=(
        Case({"train.py": "import sys\n\nprint(sys.argv[2])\n"}, ("data",), line=3),
        Case({"train.py": "splits = ('train', 'val')\n\n\ndef test(s):\n    print(s[2])\n\n\ntest(splits)\n"},
             line=5),
        Case({"train.py": "names = 'a,b'.split(',')\nprint(names[2])\n"}, line=2),
    ),
    leaves=(
        Case({"train.py": "import sys\n\nprint(sys.argv[1], sys.argv[-1])\n"}, ("data",)),
        Case({"train.py": "import sys\n\nprint(sys.argv[1] if len(sys.argv) > 1 else 'data')\n"}),
        Case({"train.py": "import sys\n\ntry:\n    print(sys.argv[1])\nexcept IndexError:\n    print('none')\n"}),
        Case({"train.py": "import glob\n\nfound = []\nfor name in glob.glob('*.pt'):\n    found.append(name)\n"
              "    print(found[-1])\nprint(found[0])\n"}),
        Case({"train.py": "names = ['a', 'b']\nprint(names[-1], names[0:5], names[1])\n"}),
        Case({"train.py": "import sys\n\nprint(sys.argv[1])\n"}, ("x",)),
        Case({"train.py": "losses = []\nfor step in range(99):\n    if step > 5:\n        print(losses[5])\n"
              "    losses.append(step)\nprint(losses[98])\n"}),
        Case({"train.py": "names = []\ntry:\n    print(names[0])\nexcept IndexError:\n    pass\n"}),
    ),
)  # fmt: skip
