import ast
import json
import pathlib


class Config:
    """A tree of settings that is read by attribute."""

    def __init__(self, values=()):
        for name, value in dict(values).items():
            setattr(self, name, Config(value) if isinstance(value, dict) else value)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def set(self, path, text):
        *front, last = path.split(".")
        node = self
        for name in front:
            if getattr(node, name) is None:
                setattr(node, name, Config())
            node = getattr(node, name)
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            value = text
        setattr(node, last, value)

    def items(self):
        return vars(self).items()


def load(path):
    return Config(json.loads(pathlib.Path(path).read_text()))
