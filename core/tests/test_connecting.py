"""Connections: what a name resolves to is judged before anybody dials, and nothing else is dialled."""

import asyncio
import os
import socket
from collections.abc import Iterable

import pytest
from licet import connecting
from licet.connecting import Place, look_up, reach, spelled
from licet.hosts import Endpoint, endpoint

NAME = endpoint("api.example.com:443")


class World:
    """A resolver that gives each answer once, and a network where some addresses are dead."""

    def __init__(self, *answers: Iterable[str], dead: Iterable[str] = ()) -> None:
        self._answers = iter(answers)
        self._dead = set(dead)
        self.dialled: list[str] = []

    async def resolve(self, wanted: Endpoint) -> list[Place]:
        family = {True: socket.AF_INET6, False: socket.AF_INET}
        return [(family[":" in one], (one, wanted.port)) for one in next(self._answers)]

    async def dial(self, place: Place) -> int:
        self.dialled.append(place[1][0])
        if place[1][0] in self._dead:
            raise ConnectionRefusedError(111, "nobody listens")
        return 7

    def connect(self, wanted: Endpoint = NAME, opens: str = "", denies: str = "") -> int:
        """Connect where policy opens, and denies, these patterns beside the name itself."""

        def judge(texts: str) -> connecting.Judge:
            patterns = [endpoint(text, patterns=True, port_optional=True) for text in texts.split()]
            return lambda address: any(pattern.covers(address) for pattern in patterns)

        async def both() -> int:
            places = await look_up(wanted, opens=judge(opens), denies=judge(denies), resolve=self.resolve)
            return await reach(wanted, places, dial=self.dial)

        return asyncio.run(both())


def test_all_that_was_judged_is_tried_in_order_and_resolved_once() -> None:
    world = World(["8.8.8.8", "2606:4700::1", "1.1.1.1"], ["127.0.0.1"], dead=["8.8.8.8", "2606:4700::1"])
    assert world.connect() == 7
    assert world.dialled == ["8.8.8.8", "2606:4700::1", "1.1.1.1"]


def test_if_nobody_listens_the_last_error_is_the_answer() -> None:
    with pytest.raises(ConnectionRefusedError):
        World(["8.8.8.8", "1.1.1.1"], dead=["8.8.8.8", "1.1.1.1"]).connect()


NOT_PUBLIC = r"^`.*` resolves to an address that is not public; name that address itself$"


@pytest.mark.parametrize(
    ("answer", "opens"),
    [
        (["127.0.0.1"], ""),
        (["8.8.8.8", "10.0.0.1"], ""),
        (["169.254.169.254"], "any *.example.com:443 api.example.com:443"),
        (["fd00:ec2::254"], "any"),
        (["fe80::1%eth0"], "any"),
        (["10.0.0.1"], "10.0.0.1:80"),
        (["10.0.0.1", "10.0.0.2"], "10.0.0.1:443"),
        (["64:ff9b::a00:1"], "10.0.0.1:443"),  # through a translator that policy says nothing of
    ],
)
def test_to_open_a_name_is_not_to_open_what_is_inside_behind_it(answer: list[str], opens: str) -> None:
    world = World(answer)
    with pytest.raises(PermissionError, match=NOT_PUBLIC):
        world.connect(opens=opens)
    assert world.dialled == []


@pytest.mark.parametrize(
    ("answer", "opens"),
    [
        (["10.0.0.1"], "10.0.0.1:443"),
        (["10.0.0.1", "10.0.0.2"], "10.0.0.0/8:443"),
        (["10.0.0.1", "8.8.8.8"], "private"),
        (["64:ff9b::808:808"], ""),
    ],
)
def test_what_is_inside_is_reached_where_its_address_is_opened(answer: list[str], opens: str) -> None:
    assert World(answer).connect(opens=opens) == 7


@pytest.mark.parametrize(
    ("answer", "denies"),
    [
        (["8.8.8.8"], "8.8.8.8"),
        (["1.1.1.1", "8.8.8.8"], "8.8.0.0/16:443"),
        (["64:ff9b::808:808"], "8.8.8.8"),
        (["10.0.0.1"], "private"),
    ],
)
def test_an_address_that_is_denied_is_denied_by_every_name(answer: list[str], denies: str) -> None:
    world = World(answer)
    with pytest.raises(PermissionError, match=r"^`.*` resolves to an address that the policy denies$"):
        world.connect(opens="10.0.0.1:443", denies=denies)
    assert world.dialled == []


def test_a_real_connection_goes_where_the_resolver_of_this_host_says() -> None:
    async def both(wanted: Endpoint) -> int:
        places = await look_up(wanted, opens=wanted.covers, denies=lambda address: False)
        assert spelled(places) == ["127.0.0.1"]
        return await reach(wanted, places)

    with socket.create_server(("127.0.0.1", 0)) as server:
        descriptor = asyncio.run(both(Endpoint("127.0.0.1", server.getsockname()[1])))
        try:
            with server.accept()[0] as accepted, socket.socket(fileno=os.dup(descriptor)) as connected:
                assert accepted.getpeername() == connected.getsockname()
        finally:
            os.close(descriptor)


def test_a_resolver_that_fails_is_a_refusal() -> None:
    async def resolve(wanted: Endpoint) -> list[Place]:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    with pytest.raises(OSError, match="unknown"):
        asyncio.run(look_up(NAME, opens=NAME.covers, denies=lambda address: False, resolve=resolve))


def test_an_address_that_swallows_packets_leaves_time_for_the_next() -> None:
    dialled: list[str] = []

    async def dial(place: Place) -> int:
        dialled.append(place[1][0])
        if place[1][0] == "8.8.8.8":
            await asyncio.Event().wait()
        return 7

    places: list[Place] = [(socket.AF_INET, ("8.8.8.8", 443)), (socket.AF_INET, ("1.1.1.1", 443))]
    assert asyncio.run(reach(NAME, places, patience=0.2, dial=dial)) == 7
    assert dialled == ["8.8.8.8", "1.1.1.1"]
    with pytest.raises(TimeoutError, match=r"^`api\.example\.com:443` did not answer within 0\.2 s$"):
        asyncio.run(reach(NAME, places[:1], patience=0.2, dial=dial))
