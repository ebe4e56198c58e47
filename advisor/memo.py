"""What is derived from a whole piece of evidence is derived once a run, and forgotten with it."""

from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import ReferenceType, ref

from core.evidence import Evidence

T = TypeVar("T")


class OncePerEvidence(Generic[T]):
    """A pure function of an ``Evidence`` that remembers its last answer while that very object lives.

    Rules share figures this way without knowing each other. Identity, not equality, is the key: comparing two
    fleets would cost more than deriving the figures again.
    """

    def __init__(self, derive: Callable[[Evidence], T]) -> None:
        """Wrap ``derive``."""
        self._derive = derive
        self._last: tuple[ReferenceType[Evidence], T] | None = None
        self.__doc__ = derive.__doc__

    def __call__(self, evidence: Evidence) -> T:
        """The figures of ``evidence``."""
        last = self._last
        if last is not None and last[0]() is evidence:
            return last[1]
        answer = self._derive(evidence)
        self._last = (ref(evidence, self._forget), answer)
        return answer

    def put(self, evidence: Evidence, answer: T) -> None:
        """Remember an answer that was derived elsewhere, from the same evidence in parts."""
        self._last = (ref(evidence, self._forget), answer)

    def _forget(self, gone: ReferenceType[Evidence]) -> None:
        last = self._last
        if last is not None and last[0] is gone:
            self._last = None
