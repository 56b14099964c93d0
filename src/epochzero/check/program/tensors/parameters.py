"""The arguments of a layer or function, by parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from epochzero.check.program.heap import Box, V, held
from epochzero.check.program.tensors.values import Dim, NotKnown, Tensor, as_dim, fresh
from epochzero.check.program.values import Constant, Items


def numbers(value: V | None) -> list[Dim] | None:
    """The sizes in a tuple or list; unknown items are unknown sizes."""
    content = value.content if isinstance(value, Box) else value
    if not isinstance(value, (Box, Items)) or not content.complete:  # type: ignore[union-attr]
        return None
    found = [as_dim(each_value) for each_value in content.values]  # type: ignore[union-attr]
    return [fresh() if each_value is None else each_value for each_value in found]


class Given:
    """Arguments by parameter.

    Args:
        names: the parameters, in order.
        positional: positional arguments.
        keywords: keyword arguments.
    """

    def __init__(
        self, names: Sequence[str], positional: Sequence[V], keywords: Mapping[str, V]
    ) -> None:
        self.positional, self.keywords = positional, keywords
        self._values = {**dict(zip(names, positional, strict=False)), **keywords}

    def has(self, name: str) -> bool:
        """Whether an argument is given and is not None."""
        value = self._values.get(name)
        return value is not None and not (isinstance(value, Constant) and value.value is None)

    def value(self, name: str) -> V | None:
        """An argument; None if it is not given."""
        return self._values.get(name)

    def tensor(self, name: str, whole: bool = True) -> Tensor:
        """A tensor whose whole shape, or whose last axes, must be known.

        Raises:
            NotKnown: its shape is unknown.
        """
        found = held(self._values.get(name))
        if not isinstance(found, Tensor) or (whole and found.is_last):
            raise NotKnown
        return found

    def size(self, name: str, default: int | None = None) -> Dim:
        """A size; an unknown one if the argument is unknown, or not given and without a default."""
        if name not in self._values:
            return fresh() if default is None else default
        found = as_dim(self._values[name])
        return fresh() if found is None else found

    def number(self, name: str, default: int | None = None) -> int:
        """A number that must be known.

        Raises:
            NotKnown: it is unknown.
        """
        found = self.size(name, default)
        if not isinstance(found, int):
            raise NotKnown
        return found

    def flag(self, name: str, default: bool = False) -> bool:
        """A truth value.

        Raises:
            NotKnown: it is unknown.
        """
        if name not in self._values:
            return default
        value = self._values[name]
        if not isinstance(value, Constant):
            raise NotKnown
        return bool(value.value)

    def each(self, name: str, count: int, default: int | None = None) -> list[Dim]:
        """Sizes for several axes: one number for all, or one number each."""
        found = numbers(self._values.get(name))
        if found is None:
            return [self.size(name, default)] * count
        return found if len(found) == count else [fresh() for _ in range(count)]

    def rest(self, start: int, name: str) -> list[Dim]:
        """Sizes that are given one by one, or as one tuple.

        Raises:
            NotKnown: their number is unknown.
        """
        values: list[V | None] = [*self.positional[start:]] or [self._values.get(name)]
        found = numbers(values[0]) if len(values) == 1 else None
        if found is not None:
            return found
        sizes = [as_dim(value) for value in values]
        if values[0] is None or (len(sizes) == 1 and sizes[0] is None):
            raise NotKnown
        return [fresh() if size is None else size for size in sizes]
