"""What the callbacks that watch a training have in common, whatever the framework."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epochzero.integrations.watching import Watch


class WatchCallback:
    """Begins a `Watch`, and ends it with its page; to be mixed into a framework's callback.

    Attributes:
        watching: what is found; None before training.
    """

    def __init__(self, report: str | None = None, **options: Any) -> None:
        """``report`` is the path of a page that is written at the end; ``options`` are those of `epochzero.watch`."""
        super().__init__()
        self.watching: Watch | None = None
        self._report = report
        self._options = options

    def _begin(self, model: Any = None, optimizer: Any = None) -> Watch:
        # Keras on another backend than torch's need not have torch.
        from epochzero.integrations.watching import Watch

        self.watching = Watch(model, optimizer, raises=False, **self._options)
        return self.watching

    def _has_fault(self) -> bool:
        return self.watching is not None and self.watching.fault is not None

    def _end(self) -> None:
        if self.watching is not None:
            self.watching.close()
            if self._report:
                self.watching.report(self._report)
