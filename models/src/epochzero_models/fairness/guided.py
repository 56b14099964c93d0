"""The guided search for discriminatory instances: one population of lanes that seek instances and walk around them.

A lane starts at a seed and follows gradients until it finds an instance, as in the global phase of ADF (Zhang et al.,
ICSE 2020). It then walks from instance to instance, as in the local phase of ADF and AEQUITAS (Udeshi et al., ASE 2018).
A lane without a new instance for some steps starts again elsewhere. Since lanes do not wait for each other, walks begin
with the first instance, and the search can be stopped at any time.
"""

from __future__ import annotations

import torch
from torch import Tensor

from epochzero.errors import InputError
from epochzero_models.fairness.search import Archive

FEWEST, MOST = 100, 2000
"""Minimum and maximum number of lanes: few lanes find more per check, many lanes find more per second."""
CHECKS_PER_LANE = 200
"""Checks of the budget for each lane."""
SEEK = 11
"""Checks of a lane without an instance before it starts again: the seed and 10 steps, as in ADF."""
WALK = 20
"""Checks of a walk without a new instance before its lane starts again."""
SEEKING = 0.1
"""Share of lanes that must wait before they seek together: a step of few lanes takes almost as long as one of many."""
REFRESH = 10
"""Steps between two computations of the gradients of walks: a ReLU network is locally linear."""
KEEP = 0.98
"""Factor by which each step reduces the earlier counts."""
PRIOR = 0.01
"""Added to the counts at each step, so that a kind of step that is no longer tried is tried again."""
POWER = 3
"""Exponent of the share of steps that led to new instances."""
SMALLEST_GRADIENT = 1e-12
SMALLEST_SHARE = 1e-3
"""Fraction of the largest gradient: smaller influences all count as this much."""
DOWN, UP, ANYWHERE = range(3)
"""Kinds of steps along an attribute: to a neighboring level, or to any other level."""


class GuidedSearch:
    """The lanes, and what they have learned about steps.

    Args:
        archive: checks inputs and stores instances.
        rows: rows of the table, from which half of the seeds are drawn, shape (n, attributes). The others are drawn from
            the domain: walks that all begin at rows meet on known instances.
        draw: random number generator.
    """

    def __init__(self, archive: Archive, rows: Tensor, draw: torch.Generator) -> None:
        self.archive, self.rows, self.draw = archive, rows, draw
        self.domain = archive.subject.domain
        self.has_gradients = not archive.subject.no_gradients(rows[:1])
        width = len(self.domain.attributes)
        inputs = archive.budget.inputs
        lanes = MOST if inputs is None else min(MOST, max(FEWEST, inputs // CHECKS_PER_LANE))
        self.levels = torch.zeros(lanes, width, dtype=torch.int64)
        self.partners = self.levels.clone()
        # Preference of each attribute by its influence on the output.
        self.gentle = torch.zeros(lanes, width)
        self.walking = torch.zeros(lanes, dtype=torch.bool)
        # Checks since the start of a lane or its last new instance; all lanes start at a seed.
        self.idle = torch.full((lanes,), WALK)
        # Recent steps of each kind along each attribute, and those that led to new instances.
        self.taken = torch.ones(3, width)
        self.found = self.taken / 2

    def run(self) -> None:
        """Search until the budget is exhausted.

        Raises:
            InputError: gradients are not finite, or the model fails.
        """
        step = 0
        while not self.archive.over:
            patience = torch.where(self.walking, WALK, SEEK if self.has_gradients else 1)
            waiting = ~self.walking | (self.idle >= patience)
            seeking = waiting.nonzero()[:, 0]
            enough = len(seeking) >= len(self.levels) * SEEKING
            if enough:
                self._start(seeking[(self.idle >= patience)[seeking]])
            walking = self.walking.nonzero()[:, 0]
            if enough:
                self._seek(seeking)
            if len(walking) and not self.archive.over:
                if self.has_gradients and step % REFRESH == 0:
                    self._weigh(walking, self._gradients(walking))
                self._walk(walking)
            step += 1

    def _start(self, lanes: Tensor) -> None:
        """Put lanes at new seeds, one half rows and the other half from the domain."""
        seeds = self.domain.drawn(len(lanes), self.draw)
        chosen = torch.randint(len(self.rows), (len(lanes),), generator=self.draw)
        is_row = torch.rand(len(lanes), 1, generator=self.draw) < 0.5
        self.levels[lanes] = torch.where(is_row, self.rows[chosen], seeds)
        self.gentle[lanes] = self.domain.free.float()
        self.walking[lanes] = False
        self.idle[lanes] = 0

    def _seek(self, lanes: Tensor) -> None:
        """Check seeds and move the others along gradients; lanes that find an instance will walk.

        An attribute moves in the direction of its gradient if that of the input and of its most different variant agree;
        if none agrees, one attribute moves at random.
        """
        if not len(lanes):
            return
        moving = lanes[self.idle[lanes] > 0]
        if len(moving):
            gradients = self._gradients(moving)
            self._weigh(moving, gradients)
            signs = gradients.sign()
            steps = torch.where(signs[0] == signs[1], signs[0], 0.0).long() * self.domain.free
            still = (steps == 0).all(dim=1).nonzero()[:, 0]
            if len(still):
                free = self.domain.free.float().expand(len(still), -1)
                at = torch.multinomial(free, 1, generator=self.draw)
                random = torch.randint(2, (len(still),), generator=self.draw) * 2 - 1
                steps[still, at[:, 0]] = random
            there = self.levels[moving] + steps
            self.levels[moving] = there.clamp_min(0).minimum(self.domain.counts - 1)
        checked = self.archive.check(self.levels[lanes])
        self.partners[lanes] = checked.partner
        self.walking[lanes] = checked.new
        self.idle[lanes] = torch.where(checked.new, 0, self.idle[lanes] + 1)

    def _walk(self, lanes: Tensor) -> None:
        """Take one step of each lane; undo it if the input is no longer discriminated against.

        The search prefers steps along attributes that hardly affect the output, and kinds of steps that have recently led to
        new instances.
        """
        levels, partners = self.levels[lanes], self.partners[lanes]
        weights = self.gentle[lanes][:, None] * (self.found / self.taken) ** POWER
        # Several times as fast as multinomial.
        sums = weights.flatten(1).cumsum(dim=1)
        random = torch.rand(len(lanes), 1, generator=self.draw) * sums[:, -1:]
        chosen = torch.searchsorted(sums, random, right=True).clamp_max(sums.shape[1] - 1)
        kind, at = chosen // levels.shape[1], chosen % levels.shape[1]
        moved = self.domain.moved(levels, at, torch.where(kind == DOWN, -1, 1))
        elsewhere = self.domain.moved_anywhere(levels, at, self.draw)
        moved = torch.where(kind == ANYWHERE, elsewhere, moved)
        likely = self.domain.with_variant(moved, self.domain.variant_of(partners))
        checked = self.archive.follow(moved, likely)
        self._learn(chosen[:, 0], checked.new)
        stays = checked.discriminates[:, None]
        self.levels[lanes] = torch.where(stays, moved, levels)
        self.partners[lanes] = torch.where(stays, checked.partner, partners)
        self.idle[lanes] = torch.where(checked.new, 0, self.idle[lanes] + 1)

    def _learn(self, chosen: Tensor, new: Tensor) -> None:
        """Count steps by kind and attribute, and those that led to new instances."""
        kinds = self.taken.numel()
        taken = torch.bincount(chosen, minlength=kinds).view_as(self.taken)
        found = torch.bincount(chosen[new], minlength=kinds).view_as(self.taken)
        self.taken = KEEP * self.taken + taken + PRIOR
        self.found = KEEP * self.found + found + PRIOR / 2

    def _weigh(self, lanes: Tensor, gradients: Tensor) -> None:
        """Prefer attributes by the inverse root of their gradients: the inverse itself hardly tries some steps."""
        sizes = gradients.abs().sum(dim=0)
        floor = SMALLEST_GRADIENT + sizes.amax(dim=1, keepdim=True) * SMALLEST_SHARE
        self.gentle[lanes] = self.domain.free / sizes.maximum(floor).sqrt()

    def _gradients(self, lanes: Tensor) -> Tensor:
        """Return gradients of the lanes' inputs and of their partners, shape (2, n, attributes).

        Raises:
            InputError: they are not finite.
        """
        inputs = torch.stack((self.levels[lanes], self.partners[lanes]))
        found = self.archive.subject.gradients(inputs.flatten(0, 1))
        if not found.isfinite().all():
            name = self.archive.subject.classifier.name
            raise InputError(f"{name} has gradients that are NaN or infinite")
        return found.view_as(inputs)
