"""The type of a value does not allow an operation."""

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
    for failed in failures(program, "type", "value"):
        yield claim_failure(
            failed,
            message=f"Python does not support this operation on these values: {failed.at.place.code}",
            fix="Convert the value at its source. If it is an option, set its type.",
        )


_OPTION = (
    "import argparse\n\nparser = argparse.ArgumentParser()\n"
    "parser.add_argument('--rate', default='0.1'{})\nargs = parser.parse_args()\n"
)

RULE = Rule(
    title="The type of a value does not allow an operation",
    category="type_mismatch",
    why="Values from the command line and from files are texts. Python checks the type when they "
    "are added, compared, called or iterated, which may be after the training.",
    fix="Convert the value at its source.",
    source="Zhang et al., ICSE 2020, Table 1, Type Mismatch",
    check=_check,
    catches=(
        Case({"train.py": f"{_OPTION.format('')}print(args.rate / 10)\n"}, line=6),
        Case({"train.py": f"{_OPTION.format('')}if args.rate > 1:\n    print(1)\n"}, line=6),
        Case({"train.py": "epoch = 3\nprint('epoch ' + epoch)\n"}, line=2),
        Case({"train.py": "epochs = 3\nfor epoch in epochs:\n    print(epoch)\n"}, line=2),
        Case({"train.py": "accuracy = 0.5\nprint(accuracy())\n"}, line=2),
        Case({"train.py": "def results():\n    return [1]\n\n\nprint(results[0])\n"}, line=5),
        Case({"train.py": "name = 'net'\nprint(f'{name:.2f}')\n"}, line=2),
        Case({"train.py": "import model\n\nprint(model(3))\n", "model.py": "def model(x):\n    return x\n"},
             line=3),
        Case({"train.py": "shape = (1, 2)\nshape[0] = 3\n"}, line=2),
        Case({"train.py": "import json\n\nc = json.load(open('c.json'))\nprint(int(c['steps']))\n",
              "c.json": '{"steps": "1e3"}'}, line=4),
    ),
    leaves=(
        Case({"train.py": f"{_OPTION.format(', type=float')}print(args.rate / 10)\n"}),
        Case({"train.py": f"{_OPTION.format('')}print(float(args.rate) / 10)\n"}),
        Case({"train.py": "epoch = 3\nprint('epoch ' + str(epoch), f'{epoch:03d}', '=' * epoch)\n"}),
        Case({"train.py": "def cast(v):\n    for kind in (int, float):\n        try:\n"
              "            return kind(v)\n        except ValueError:\n            pass\n    return v\n\n\n"
              "print(cast('3.5'))\n"}),
        Case({"train.py": "def cast(v):\n    try:\n        return int(v)\n    except ValueError as e:\n"
              "        raise KeyError(v) from e\n\n\ntry:\n    cast('x')\nexcept KeyError:\n    pass\n"}),
        Case({"train.py": "from enum import Enum\n\n\nclass Mode(Enum):\n    A = 1\n\n    def show(self):\n"
              "        return f'{self.value:d}'\n\n\nprint(Mode.A.show(), Mode.A.name.lower(), Mode['A'])\n"}),
        Case({"train.py": "keys = {'a': 1}.keys()\nprint(keys - {'a'}, keys | {'b'})\n"}),
    ),
)  # fmt: skip
