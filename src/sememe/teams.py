"""Objects that stay in memory and work together: in this process, or on the nodes of a cluster.

An executor's tasks keep nothing. A team is for work whose state is large, such as the matrices of a
model: each member is an object made where it lives, and gets calls of its methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

Make = Callable[[int], Any]


class Layout(NamedTuple):
    """How many members a team has, and the threads and the bytes of memory that each may use."""

    num: int
    threads: int
    memory: int = 0

    def room_on(self, cores: int, memory: int) -> int:
        """How many members fit on a node."""
        by_memory = memory // self.memory if self.memory else cores
        return min(cores // self.threads, by_memory)


class LostMembersError(Exception):
    """Members that were lost with their worker or node; nobody else's state is certain either."""

    def __init__(self, members: Sequence[int]) -> None:
        super().__init__(f"lost: {', '.join(map(str, members))}")
        self.members = list(members)


class Team(Protocol):
    """The members, by number. Every method raises LostMembersError if one of them was lost."""

    num: int

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all members at the same time; return their results."""
        ...

    def ask_one(self, member: int, method: str, *arguments: Any) -> Any:
        """Call a method of one member; return its result."""
        ...

    def exchange(self, give: str, join: str, take: str, *arguments: Any) -> None:
        """Let every member give a part to each, join what it was given, and take what all joined.

        give(*arguments) returns a list with a part for each member; join(*arguments, *parts) the
        joined part; take(*arguments, *joined) nothing. Parts go from member to member.
        """
        ...

    def replace(self, members: Sequence[int]) -> None:
        """Make lost members again, maybe on another node, without what they knew."""
        ...

    def close(self) -> None:
        """End all members."""
        ...


class LocalTeam:
    """Members in this process, each in a thread of its own; none of them is ever lost."""

    def __init__(self, make: Make, num: int) -> None:
        self.num = num
        self._members = [make(number) for number in range(num)]
        self._threads = ThreadPoolExecutor(num)

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all members at the same time; return their results."""
        return self._all(method, [arguments] * self.num)

    def ask_one(self, member: int, method: str, *arguments: Any) -> Any:
        """Call a method of one member; return its result."""
        return getattr(self._members[member], method)(*arguments)

    def exchange(self, give: str, join: str, take: str, *arguments: Any) -> None:
        """Let every member give a part to each, join what it was given, and take what all joined.

        See Team.
        """
        given = self._all(give, [arguments] * self.num)
        joined = self._all(join, [(*arguments, *parts) for parts in zip(*given, strict=True)])
        self._all(take, [(*arguments, *joined)] * self.num)

    def replace(self, members: Sequence[int]) -> None:
        """Nobody is lost."""

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()
        self._members.clear()

    def _all(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        work = [
            self._threads.submit(getattr(member, method), *own)
            for member, own in zip(self._members, arguments, strict=True)
        ]
        return [future.result() for future in work]
