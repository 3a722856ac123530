"""Messages between grader and worker."""

import math
import socket
import threading
import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.wire import protocol

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=20)
    | st.complex_numbers(allow_nan=False)
    | st.sampled_from(
        [..., torch.float32, torch.bool, torch.device("cpu"), torch.Size([2, 3]), slice(1, None, 2), range(3)]
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=4)
        | st.frozensets(st.integers(), max_size=4)
    ),
    max_leaves=12,
)


def refuse(value, writer):
    raise TypeError(type(value).__name__)


def there_and_back(value):
    near, far = socket.socketpair()
    writer = protocol.Writer(refuse)
    header = {"value": writer.encode(value), "tensors": writer.described}
    with near, far:
        sender = threading.Thread(target=protocol.send, args=(near, header, writer.blobs))
        sender.start()
        received, data = protocol.receive(far, 1 << 26)
        sender.join()
    return protocol.Reader(received["tensors"], data, refuse).decode(received["value"])


@given(plain)
@settings(max_examples=150, deadline=None)
def test_plain_data_comes_back_as_it_was(value):
    back = there_and_back(value)
    assert back == value
    assert type(back) is type(value)


def test_special_floats_come_back():
    assert there_and_back([math.inf, -math.inf]) == [math.inf, -math.inf]
    assert math.isnan(there_and_back(math.nan))
    assert math.copysign(1, there_and_back(-0.0)) == -1


@pytest.mark.parametrize("dtype", protocol.DTYPES.values(), ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3, 1)])
def test_tensors_come_back_bit_for_bit(dtype, shape):
    tensor = (torch.randn(shape, dtype=torch.float64) * 9).to(dtype)
    back = there_and_back(tensor)
    assert back.dtype == dtype
    assert back.shape == tensor.shape
    assert torch.equal(back, tensor)


def test_odd_tensors_come_back():
    x = torch.randn(4, 6)
    for tensor in (x.T, x[::2, 1::3], torch.ones(1).expand(3, 5), x.to(torch.complex64).conj(), x > 0):
        assert torch.equal(there_and_back(tensor), tensor)
    assert there_and_back(torch.empty(10**9, 5, device="meta")).shape == (10**9, 5)
    nan = there_and_back(torch.tensor([math.nan, math.inf]))
    assert nan[0].isnan()
    assert nan[1] == math.inf


def test_one_tensor_stays_one():
    x = torch.ones(2)
    a, (b, c) = there_and_back((x, [x, torch.ones(2)]))
    assert a is b
    assert a is not c


def test_generators_keep_their_state():
    generator = torch.Generator().manual_seed(5)
    back = there_and_back(generator)
    assert torch.equal(torch.rand(3, generator=back), torch.rand(3, generator=generator))


def test_subclasses_cross_as_plain_data():
    class Odd(int):
        def __index__(self):
            return 5

        def __eq__(self, other):
            return True

    class Sub(torch.Tensor):
        pass

    assert type(there_and_back(Odd(3))) is int
    assert type(there_and_back(torch.ones(2).as_subclass(Sub))) is torch.Tensor
    assert type(there_and_back(torch.nn.Parameter(torch.ones(2)))) is torch.Tensor


@pytest.mark.parametrize("value", [object(), torch.ones(2, 2).to_sparse(), lambda: 0])
def test_other_objects_do_not_cross(value):
    with pytest.raises(TypeError):
        there_and_back(value)


def test_a_message_longer_than_allowed_is_refused_before_it_is_read():
    near, far = socket.socketpair()
    with near, far:
        near.sendall(protocol._LENGTHS.pack(100, 1 << 50))
        with pytest.raises(protocol.ProtocolError):
            protocol.receive(far, 1 << 20)


def test_a_silent_sender_is_given_up():
    near, far = socket.socketpair()
    started = time.monotonic()
    with near, far:
        near.sendall(b"\0\0")
        with pytest.raises(TimeoutError):
            protocol.receive(far, 1 << 20, left=protocol.until(time.monotonic() + 0.1))
    assert time.monotonic() - started < 5


@given(st.recursive(plain.filter(lambda v: isinstance(v, int | str | float) or v is None), st.lists, max_leaves=20))
@settings(max_examples=200, deadline=None)
def test_whatever_the_header_holds_only_protocol_errors_come_out(value):
    try:
        protocol.Reader(value, bytearray(16), lambda v, r: None)
        protocol.Reader([], bytearray(), lambda v, r: None).decode(value)
    except protocol.ProtocolError:
        pass


def test_names_of_torch_are_found_and_others_are_not():
    for value in (torch.nn.Linear, torch.relu, torch.nn.functional.softmax, torch.nn.functional, len, dict, torch.bmm):
        assert protocol.find_name(protocol.name_of(value)) is value
    for value in (pytest, test_odd_tensors_come_back, socket.socket, 7, "torch.relu"):
        assert protocol.name_of(value) is None
