"""Sources of randomness: values are recorded in the order in which they are drawn, or recorded ones are returned.

Recorded are: seeds of the generators when they are created; seeds that are set; the system's entropy, from which
NumPy and `random` are seeded; and the time, if the program's own code reads it, because programs use it as a seed. Not
recorded: what other threads and processes do in the meantime, and data from the network.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import random
import sys
import time
from array import array
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from epochzero.run.replay.child.files import drawn_of
from epochzero.run.watch.child.places import is_user

MOST_DRAWN = 10_000
"""Largest number of values stored for a source; later ones are not stored."""
_MOST_OF_WORKER = 1000
_MOST_BYTES = 64
_RANDOM = random.__file__


class Sources:
    """Intercepts the sources of randomness.

    Attributes:
        start: seeds of the generators when they were created.
        drawn: source -> values drawn, in order.
        changed: sources that returned another value than in the captured run and were overridden.
    """

    def __init__(self, folder: Path, kept: Mapping[str, Any] | None = None) -> None:
        """Create an empty record.

        Args:
            folder: directory in which data-loader workers store their values.
            kept: ``start`` and ``drawn`` of a capture to be returned again; None to record.
        """
        self._kept = kept
        self._next: dict[str, int] = {}
        self._folder = folder
        self._worker: Callable[[], str] | None = None
        self._of_worker: dict[str, list[Any]] | None = None
        self.start: dict[str, Any] = {}
        self.drawn: dict[str, list[Any]] = {}
        self.changed: set[str] = set()

    def forked(self, worker: Callable[[], str]) -> None:
        """From now on this process is the data-loader worker with that name, or no worker."""
        self._worker = worker
        self._of_worker, self._next = None, {}

    # Recording and replaying ----------------------------------------------------------------------

    def settle(self, source: str, value: Any) -> Any:
        """Return the value for the program: the one just drawn, or the recorded one."""
        if self._worker is not None:
            return self._settle_of_worker(source, value)
        if self._kept is not None:
            return self._again(source, value, self._kept["drawn"])
        held = self.drawn.setdefault(source, [])
        if len(held) < MOST_DRAWN:
            held.append(value)
        return value

    def _again(self, source: str, value: Any, drawn: Mapping[str, list[Any]]) -> Any:
        number = self._next.get(source, 0)
        self._next[source] = number + 1
        kept = drawn.get(source, ())
        if number >= len(kept) or type(kept[number]) is not type(value):
            return value
        if kept[number] != value:
            self.changed.add(source)
        return kept[number]

    def _settle_of_worker(self, source: str, value: Any) -> Any:
        """The same in a worker, which may be killed at any time: recorded in a file of its own."""
        name = self._worker() if self._worker is not None else ""
        number = self._next.get(source, 0)
        # A worker's seeds derive from those of its loader.
        if not name or not source.startswith(("os.", "time.")) or number >= _MOST_OF_WORKER:
            return value
        path = self._folder / drawn_of(name)
        try:
            if self._kept is None:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([source, value]) + "\n")
                self._next[source] = number + 1
                return value
            if self._of_worker is None:
                self._of_worker = {}
                for line in path.read_text(encoding="utf-8").splitlines():
                    held, drawn = json.loads(line)
                    self._of_worker.setdefault(held, []).append(drawn)
        except (OSError, ValueError):
            self._of_worker = {}
        return self._again(source, value, self._of_worker or {})

    def first(self, generator: str, seed: int, put: Callable[[int], object]) -> None:
        """A generator was created with this seed: record it, or set the recorded one."""
        self.start[generator] = seed
        if self._kept is not None and generator in self._kept["start"]:
            put(self._kept["start"][generator])

    def first_unseeded(self, generator: str, put: Callable[[int], object]) -> None:
        """A generator was created with a state from the system's entropy.

        The state has 2,500 random bytes; a seed of 16 bytes drawn here serves the same purpose.
        """
        seed = int.from_bytes(os.urandom(16), "little")
        put(seed)
        self.first(generator, seed, put)

    # Installing -----------------------------------------------------------------------------------

    def watch_python(self) -> None:
        """Intercept Python's own sources."""
        self.first_unseeded("random", random.seed)
        self._wrap(random, "seed", self._seeding("random.seed", _entropy))
        self._wrap(os, "urandom", self._giving_bytes)
        # `random` and, through `secrets`, NumPy read entropy from here.
        random._urandom = os.urandom  # type: ignore[attr-defined]
        for name in ("time", "time_ns"):
            self._wrap(time, name, functools.partial(self._timing, f"time.{name}"))

    def watch_numpy(self, module: ModuleType) -> None:
        """Intercept `numpy.random`."""
        self.first_unseeded("numpy", functools.partial(_seed_numpy, module.seed))
        for name in ("seed", "default_rng"):
            self._wrap(module, name, self._seeding(f"numpy.random.{name}", lambda: None))

    def watch_torch(self, torch: ModuleType) -> None:
        """Intercept torch's generators, those of a GPU once it is used."""
        manual_seed = torch.manual_seed
        self.first("torch", torch.initial_seed(), torch.default_generator.manual_seed)
        seeding = self._seeding("torch.manual_seed", lambda: None)
        again = functools.partial(self._seeding_anew, manual_seed)
        for owner in (torch, torch.random):
            self._wrap(owner, "manual_seed", seeding)
            self._wrap(owner, "seed", again)
        # Runs when CUDA is initialized; immediately if it already is.
        torch.cuda._lazy_call(functools.partial(self._first_cuda, torch))

    def _first_cuda(self, torch: Any) -> None:
        for number, generator in enumerate(torch.cuda.default_generators):
            self.first(f"cuda:{number}", generator.initial_seed(), generator.manual_seed)

    def _wrap(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        function = getattr(owner, name)
        setattr(owner, name, functools.update_wrapper(wrap(function), function))

    def _seeding(self, source: str, missing: Callable[[], Any]) -> Callable[[Any], Any]:
        def wrap(function: Any) -> Any:
            def seed(*args: Any, **kwargs: Any) -> Any:
                if args or not kwargs:
                    given = args[0] if args else missing()
                    if type(given) in (int, float, str):
                        args = (self.settle(source, given), *args[1:])
                return function(*args, **kwargs)

            return seed

        return wrap

    def _seeding_anew(self, manual_seed: Any, function: Any) -> Any:
        def seed() -> int:
            drawn = function()
            kept: int = self.settle("torch.seed", drawn)
            if kept != drawn:
                manual_seed(kept)
            return kept

        return seed

    def _timing(self, source: str, function: Any) -> Any:
        def now() -> Any:
            value = function()
            own = is_user(sys._getframe(1).f_code.co_filename)
            return self.settle(source, value) if own else value

        return now

    def _giving_bytes(self, function: Any) -> Any:
        def urandom(size: int) -> bytes:
            value: bytes = function(size)
            asking = sys._getframe(1).f_code.co_filename
            if size > _MOST_BYTES or not (asking == _RANDOM or is_user(asking)):
                return value
            return bytes.fromhex(self.settle(f"os.urandom {size}", value.hex()))

        return urandom


def _entropy() -> int:
    """Draw a seed as `random` does if none is given."""
    return int.from_bytes(os.urandom(32), "little")


def _fresh_numpy(number: int) -> Any:
    """Return the state that `_seed_numpy` leaves."""
    generator = sys.modules["numpy.random"].RandomState()
    _seed_numpy(generator.seed, number)
    return generator.get_state()


def _fresh_torch(number: int) -> Any:
    """Return the state of torch's generator after this seed."""
    return sys.modules["torch"].Generator().manual_seed(number).get_state()


def _is_fresh(name: str, state: Any, number: int) -> bool:
    """Whether nothing was drawn from a generator since it was given this seed."""
    if name == "random":
        return bool(state == random.Random(number).getstate())
    if name == "torch":
        return bool(state.equal(_fresh_torch(number)))
    if name != "numpy":
        return False
    fresh = _fresh_numpy(number)
    return bool((state[1] == fresh[1]).all()) and tuple(state[2:]) == tuple(fresh[2:])


def _seed_numpy(seed: Callable[[list[int]], object], number: int) -> None:
    """Seed NumPy, which takes 32-bit words."""
    seed(list(array("I", number.to_bytes(16, "little"))))


# States ---------------------------------------------------------------------------------------------


def random_states() -> dict[str, Any]:
    """Return the states of all generators unencoded: nearly all of them are never needed."""
    torch: Any = sys.modules["torch"]
    states = {"random": random.getstate(), "torch": torch.get_rng_state()}
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        states["numpy"] = numpy.get_state()
    if torch.cuda.is_initialized():
        states |= {f"cuda:{n}": state for n, state in enumerate(torch.cuda.get_rng_state_all())}
    return states


def states_as_json(
    states: Mapping[str, Any], start: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Encode the result of `random_states` as JSON data, with words and bytes in hexadecimal digits.

    Args:
        states: of the generators.
        start: their seeds at the start; a generator that has drawn nothing since is encoded by its seed.
    """
    stored: dict[str, Any] = {}
    for name, state in states.items():
        if start and name in start and _is_fresh(name, state, start[name]):
            stored[name] = {"seed": start[name]}
        elif name == "random":
            version, words, gauss = state
            stored[name] = [version, array("I", words).tobytes().hex(), gauss]
        elif name == "numpy":
            kind, words, *rest = state
            stored[name] = [kind, words.tobytes().hex(), *rest]
        else:
            stored[name] = ctypes.string_at(state.data_ptr(), state.numel()).hex()
    return stored


def set_random_states(stored: Mapping[str, Any]) -> None:
    """Restore the states of existing generators from `states_as_json`."""
    torch: Any = sys.modules["torch"]
    if isinstance(stored["random"], Mapping):
        random.setstate(random.Random(stored["random"]["seed"]).getstate())
    else:
        version, words, gauss = stored["random"]
        random.setstate((version, tuple(_words(words)), gauss))
    if isinstance(stored["torch"], Mapping):
        torch.set_rng_state(_fresh_torch(stored["torch"]["seed"]))
    else:
        torch.set_rng_state(_bytes(torch, stored["torch"]))
    if "numpy" in stored:
        # NumPy imports it when it is first used, which in the captured run was before the snapshot.
        numpy: Any = import_module("numpy.random")
        if isinstance(stored["numpy"], Mapping):
            numpy.set_state(_fresh_numpy(stored["numpy"]["seed"]))
        else:
            kind, words, *rest = stored["numpy"]
            numpy.set_state((kind, _words(words), *rest))
    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            if f"cuda:{number}" in stored:
                torch.cuda.set_rng_state(_bytes(torch, stored[f"cuda:{number}"]), number)


def _words(text: str) -> array[int]:
    return array("I", bytes.fromhex(text))


def _bytes(torch: Any, text: str) -> Any:
    return torch.frombuffer(bytearray.fromhex(text), dtype=torch.uint8)
