"""A team whose members are actors of a Ray cluster, one on each of some cores.

A member that is lost with its worker or its node is made again on another one: on free cores, or,
if the nodes that are left have none, beside another member.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sememe.errors import ClusterError, OptionError, SememeError
from sememe.teams import Layout, LostMembersError, Make

if TYPE_CHECKING:
    from sememe.cluster.connection import Node

_GB = 1e9
_PATIENCE_S = 20.0  # for free cores


class _Member:
    """An object on a node; errors of its making are those of a call, not the actor's end."""

    def make(self, make: Make, number: int) -> None:
        """Make the object."""
        self._own = make(number)

    def call(self, method: str, *arguments: Any) -> Any:
        """Call one of its methods."""
        return getattr(self._own, method)(*arguments)

    def answer(self) -> None:
        """Tell that it is there."""


class RayTeam:
    """Members on the nodes of a cluster."""

    def __init__(
        self,
        ray: Any,
        nodes: Callable[[], Sequence[Node]],
        note: Callable[[str], None],
        make: Make,
        layout: Layout,
    ) -> None:
        """`nodes` lists the living nodes; `note` tells the user that members were lost."""
        self._ray, self._nodes, self._note = ray, nodes, note
        self.num, self._layout = layout.num, layout
        self._make = ray.put(make)
        self._members: list[Any] = [None] * self.num
        try:
            self._begin(range(self.num))
        except BaseException:
            self.close()
            raise

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all members at the same time; return their results."""
        arguments = tuple(self._sent(own) for own in arguments)
        return self._results([own.call.remote(method, *arguments) for own in self._members])

    def ask_one(self, member: int, method: str, *arguments: Any) -> Any:
        """Call a method of one member; return its result."""
        return self._results([self._members[member].call.remote(method, *arguments)])[0]

    def exchange(self, give: str, join: str, take: str, *arguments: Any) -> None:
        """Let every member give a part to each, join what it was given, and take what all joined.

        The parts go from node to node; see Team.
        """
        members, several = self._members, {"num_returns": self.num}
        given = [own.call.options(**several).remote(give, *arguments) for own in members]
        if self.num == 1:
            given = [given]
        joined = [
            own.call.remote(join, *arguments, *(parts[number] for parts in given))
            for number, own in enumerate(members)
        ]
        self._results([own.call.remote(take, *arguments, *joined) for own in members])

    def replace(self, members: Sequence[int]) -> None:
        """Make lost members again, on nodes that are left."""
        self._note(
            f"{len(members)} of {self.num} workers were lost; the words since the last copy of the "
            "vectors are repeated."
        )
        for number in members:
            self._end(number)
        self._begin(members, is_again=True)

    def close(self) -> None:
        """End all members."""
        for number in range(self.num):
            self._end(number)

    def _begin(self, members: Sequence[int], *, is_again: bool = False) -> None:
        for number in members:
            self._members[number] = self._actor(self._layout.threads)
        is_first = True
        while waiting := self._without_place(members):
            if is_again:
                self._check_room()
            if is_first and is_again:
                # Nodes are fewer than before: a member shares the cores of another one.
                for number in waiting:
                    self._end(number)
                    self._members[number] = self._actor(0)
            elif is_first:
                self._note(f"Waiting for the cores of {len(waiting)} workers; other work has them.")
            is_first = False
        self._results([self._members[number].make.remote(self._make, number) for number in members])

    def _without_place(self, members: Sequence[int]) -> list[int]:
        """The members that have no process after some time."""
        calls = {self._members[number].answer.remote(): number for number in members}
        waiting: list[Any] = list(calls)
        _, waiting = self._ray.wait(waiting, num_returns=len(waiting), timeout=_PATIENCE_S)
        return [calls[call] for call in waiting]

    def _check_room(self) -> None:
        """Raise an error if the nodes that are left have not the memory for all members."""
        memory = self._layout.memory
        if memory and sum(node.memory // memory for node in self._nodes()) < self.num:
            raise ClusterError(
                f"The nodes that are left have no room for {self.num} workers of "
                f"{memory / _GB:.1f} GB. Add nodes, then run the same command with --resume."
            )

    def _actor(self, cores: int) -> Any:
        """A member that has these cores, and its memory, to itself."""
        kind = self._ray.remote(_Member)
        needs = {"num_cpus": cores, "memory": self._layout.memory or None}
        # A call changes its member: none is repeated, except by the training, from a copy.
        return kind.options(**needs, scheduling_strategy="SPREAD").remote()

    def _end(self, number: int) -> None:
        if self._members[number] is not None:
            with suppress(Exception):  # it is gone already
                self._ray.kill(self._members[number], no_restart=True)
            self._members[number] = None

    def _sent(self, argument: Any) -> Any:
        """An argument that all members need, sent to each node once."""
        return self._ray.put(argument) if hasattr(argument, "nbytes") else argument

    def _results(self, references: list[Any]) -> list[Any]:
        """The results of calls; LostMembersError if a lost member prevents one."""
        errors = self._ray.exceptions
        try:
            return list(self._ray.get(references))
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, SememeError):
                raise cause from None
            if not isinstance(cause, errors.RayError):
                raise ClusterError(
                    f"A worker failed on the cluster: {first_line(cause or error)}."
                ) from error
        except errors.RayError:
            pass
        raise LostMembersError(self._lost())

    def _lost(self) -> list[int]:
        """The members that do not answer."""
        calls = [None if own is None else own.answer.remote() for own in self._members]
        lost = []
        for number, call in enumerate(calls):
            try:
                if call is not None:
                    self._ray.get(call)
            except self._ray.exceptions.RayError:
                lost.append(number)
        return lost


def layout_on(nodes: Sequence[Node], num: int, threads: int, memory: int) -> Layout:
    """How many members of how many threads; 0: one on each node, or all cores that there are.

    memory: the bytes that a member needs.
    """
    nodes = [node for node in nodes if node.cores]
    fitting = [node for node in nodes if node.memory >= memory]
    if not fitting:
        most = max((node.memory for node in nodes), default=0)
        raise OptionError(
            f"A worker needs {memory / _GB:.1f} GB for its vectors, and no node of the cluster has "
            f"more than {most / _GB:.1f}: lower --dim, or raise --min-count."
        )
    wanted = num or len(fitting)
    most_threads = max(node.cores for node in fitting)
    for own in [threads] if threads else range(most_threads, 0, -1):
        layout = Layout(wanted, own, memory)
        room = sum(layout.room_on(node.cores, node.memory) for node in nodes)
        if room >= wanted:
            return layout
    raise OptionError(
        f"The cluster has room for {room} workers of {own} {'core' if own == 1 else 'cores'} and "
        f"{memory / _GB:.1f} GB, not for {wanted}: lower --num-workers or --workers."
    )


def first_line(error: BaseException) -> str:
    """The first line of an error of Ray, without a period; there may be pages of others."""
    first, *_ = str(error).splitlines() or [""]
    return first.strip().rstrip(".") or type(error).__name__
