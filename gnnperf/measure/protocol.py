"""Messages between processes: JSON and then the bytes of arrays, or any Python object between forks."""

from __future__ import annotations

import json
import pickle
import select
import socket
import struct
from typing import Any

from gnnperf.measure.arrays import Bytes, aligned_empty

_LENGTH = struct.Struct("<Q")

LONGEST_SLEEP_S = 1.0
"""Ctrl-C in the moment before a call that waits is only seen after it: none may wait for longer."""


def send(peer: socket.socket, message: dict[str, Any], *blobs: Bytes) -> None:
    """Send a message followed by its blobs (their sizes travel in it)."""
    body = json.dumps({**message, "blobs": [b.nbytes for b in blobs]}).encode()
    peer.sendall(_LENGTH.pack(len(body)) + body)
    for blob in blobs:
        peer.sendall(blob.data)


def receive(peer: socket.socket) -> tuple[dict[str, Any], list[Bytes]]:
    """The next message and its blobs. Raises EOFError when the peer is gone."""
    size = _LENGTH.unpack(_exactly(peer, _LENGTH.size).tobytes())[0]
    message: dict[str, Any] = json.loads(_exactly(peer, size).tobytes())
    return message, [_exactly(peer, n) for n in message.pop("blobs")]


def send_object(peer: socket.socket, value: Any) -> None:
    """Send what can be pickled, to a process that runs the same program."""
    body = pickle.dumps(value)
    peer.sendall(_LENGTH.pack(len(body)) + body)


def receive_object(peer: socket.socket) -> Any:
    """The next object. Raises EOFError when the peer is gone."""
    size = _LENGTH.unpack(_exactly(peer, _LENGTH.size).tobytes())[0]
    return pickle.loads(_exactly(peer, size).data)


def _exactly(peer: socket.socket, nbytes: int) -> Bytes:
    memory = aligned_empty(nbytes)
    view, done = memory.data, 0
    while done < nbytes:
        if peer.gettimeout() is None:
            poller = select.poll()
            poller.register(peer, select.POLLIN)
            while not poller.poll(1000 * LONGEST_SLEEP_S):
                pass
        n = peer.recv_into(view[done:], min(nbytes - done, 1 << 20))
        if n == 0:
            raise EOFError
        done += n
    return memory
